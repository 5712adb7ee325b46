/**
 * Admission webhooks: the Mutating- and ValidatingWebhookConfigurations of the cluster, called with AdmissionReview v1.
 *
 * Mutating webhooks run sequentially, ordered by configuration name, each on the result of the previous one; validating
 * webhooks run concurrently. A failed call is handled according to the webhook's failurePolicy.
 */
import { randomUUID } from 'node:crypto'
import type { Call } from '../handlers/call.ts'
import { endRule, startObject, startRule } from '../cel/budget.ts'
import { loadEngine } from '../cel/engine.ts'
import { checkObject } from '../codec/decode.ts'
import {
  type ApiObject,
  asRecords,
  asStrings,
  cloneJson,
  getPath,
  isRecord,
  isSameJson,
  type Json,
  withMetadata,
} from '../codec/object-shape.ts'
import { applyJsonPatch } from '../patch/json-patch.ts'
import { compileLabelSelector } from '../resource/selectors.ts'
import { ApiError, forbidden, internal } from '../exchange/status.ts'
import type { Collection } from '../store/collection.ts'
import type { Store } from '../store/store.ts'
import { postReview, readTarget, type ResolveService } from './webhook-client.ts'
import type { AdmissionReview, Operation, WebhookCaller } from './admission.ts'

const group = 'admissionregistration.k8s.io'

interface Webhook {
  readonly name: string
  readonly configuration: Json
}

export class Webhooks implements WebhookCaller {
  readonly #mutating: Collection
  readonly #validating: Collection
  readonly #namespaces: Collection
  readonly #resolveService: ResolveService

  constructor(store: Store, resolveService: ResolveService) {
    this.#mutating = store.collection(`mutatingwebhookconfigurations.${group}`)
    this.#validating = store.collection(`validatingwebhookconfigurations.${group}`)
    this.#namespaces = store.collection('namespaces')
    this.#resolveService = resolveService
  }

  hasMatch(call: Call, operation: Operation): boolean {
    if (this.#mutating.size + this.#validating.size === 0 || call.resource.group === group) return false
    return [this.#mutating, this.#validating].some((collection) =>
      this.#webhooks(collection).some(({ configuration }) =>
        matchesRules(
          configuration,
          call.resource.group,
          call.resource.version,
          call.resource.plural,
          call.info.subresource,
          operation,
          call.resource.namespaced,
        ),
      ),
    )
  }

  #webhooks(collection: Collection): Webhook[] {
    return collection.range({ namespace: '', limit: 0 }).items.flatMap((stored) =>
      asRecords(stored.object['webhooks']).map((configuration) => ({
        name: String(configuration['name']),
        configuration,
      })),
    )
  }

  /** In order; each webhook is matched against the review at the time it is called. */
  *#matching(collection: Collection, review: () => AdmissionReview): Generator<Webhook> {
    for (const webhook of this.#webhooks(collection)) {
      const { configuration } = webhook
      const current = review()
      const { resource, subresource, operation } = current
      const isNamed = matchesRules(
        configuration,
        resource.group,
        resource.version,
        resource.plural,
        subresource,
        operation,
        resource.namespaced,
      )
      if (isNamed && this.#matchesNamespace(configuration, current) && matchesObject(configuration, current))
        yield webhook
    }
  }

  #matchesNamespace(configuration: Json, review: AdmissionReview): boolean {
    const selector = compileLabelSelector(configuration['namespaceSelector'])
    if (selector.isEmpty) return true
    if (review.resource.plural === 'namespaces' && review.resource.group === '')
      return selector.matches((review.object ?? review.oldObject)?.metadata.labels)
    return review.namespace === '' || selector.matches(this.#namespaces.get(review.namespace)?.labels)
  }

  /** Two rounds: a webhook with reinvocationPolicy IfNeeded is called again when a later webhook changed the object. */
  async mutate(review: AdmissionReview): Promise<ApiObject> {
    let object = review.object as ApiObject
    /** The object after each webhook. */
    const results = new Map<Json, ApiObject>()
    const invoke = async (webhook: Webhook): Promise<void> => {
      const current = { ...review, object }
      if (!(await meetsConditions(webhook, current))) return
      const response = await this.#call(webhook, current)
      const patch = getPath(response, 'patch')
      if (typeof patch === 'string' && patch !== '') object = applyPatch(webhook, current, patch)
      results.set(webhook.configuration, object)
    }
    for (const webhook of this.#matching(this.#mutating, () => ({ ...review, object }))) await invoke(webhook)
    for (const webhook of this.#matching(this.#mutating, () => ({ ...review, object }))) {
      const before = results.get(webhook.configuration)
      const isNeeded = webhook.configuration['reinvocationPolicy'] === 'IfNeeded' && before !== undefined
      if (isNeeded && !isSameJson(before, object)) await invoke(webhook)
    }
    return object
  }

  async validate(review: AdmissionReview): Promise<void> {
    const outcomes = await Promise.allSettled(
      [...this.#matching(this.#validating, () => review)].map(async (webhook) => {
        if (await meetsConditions(webhook, review)) await this.#call(webhook, review)
      }),
    )
    // The first rejection in webhook order, independent of which response arrived first.
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }

  /**
   * The response of a webhook that allows the request; throws its rejection otherwise. Undefined: the call failed and
   * was ignored.
   */
  async #call(webhook: Webhook, review: AdmissionReview): Promise<Json | undefined> {
    const { name, configuration } = webhook
    const uid = randomUUID()
    let response: Json
    try {
      const target = readTarget(configuration['clientConfig'], this.#resolveService)
      const answer = await postReview(
        target,
        { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestOf(uid, review) },
        Number(configuration['timeoutSeconds'] ?? 10) * 1000,
      )
      const found = answer['response']
      if (!isRecord(found)) throw new Error('webhook response was absent')
      if (found['uid'] !== uid)
        throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(found['uid'] ?? '')}`)
      response = found
    } catch (error) {
      if (configuration['failurePolicy'] === 'Ignore') return undefined
      throw internal(
        `failed calling webhook ${JSON.stringify(name)}: failed to call webhook: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
    for (const warning of asStrings(response['warnings'])) review.warn(warning)
    if (response['allowed'] !== true) throw denial(name, response['status'])
    return response
  }
}

/**
 * Whether all match conditions hold. One false condition excludes the webhook regardless of the others; otherwise an
 * evaluation error is handled according to the failurePolicy.
 */
async function meetsConditions({ configuration }: Webhook, review: AdmissionReview): Promise<boolean> {
  const conditions = asRecords(configuration['matchConditions'])
  if (conditions.length === 0) return true
  const engine = await loadEngine()
  const variables = {
    object: review.object === undefined ? null : inVersion(review.object, review),
    oldObject: review.oldObject === undefined ? null : inVersion(review.oldObject, review),
    request: requestOf('', review),
  }
  const problems: string[] = []
  for (const { expression } of conditions) {
    startObject()
    startRule()
    try {
      if (engine.compileCondition(String(expression)).evaluate(variables) !== true) return false
    } catch (error) {
      const [why = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
      problems.push(`expression '${String(expression)}' resulted in error: ${why.replace(/^No/, 'no')}`)
    } finally {
      endRule()
    }
  }
  if (problems.length === 0) return true
  if (configuration['failurePolicy'] === 'Ignore') return false
  throw forbidden(review.resource, review.name, problems.length === 1 ? problems.join('') : `[${problems.join(', ')}]`)
}

function requestOf(uid: string, review: AdmissionReview): Json {
  const { resource, user, operation } = review
  const kind = { group: resource.group, version: resource.version, kind: resource.kind }
  const plural = { group: resource.group, version: resource.version, resource: resource.plural }
  return {
    uid,
    kind,
    resource: plural,
    ...(review.subresource !== '' && { subResource: review.subresource, requestSubResource: review.subresource }),
    requestKind: kind,
    requestResource: plural,
    name: review.name,
    ...(review.namespace !== '' && { namespace: review.namespace }),
    operation,
    userInfo: { username: user.name, groups: user.groups, ...(user.uid !== undefined && { uid: user.uid }) },
    object: review.object === undefined ? null : inVersion(review.object, review),
    oldObject: review.oldObject === undefined ? null : inVersion(review.oldObject, review),
    dryRun: review.isDryRun,
    options: {
      apiVersion: 'meta.k8s.io/v1',
      kind: { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions', CONNECT: 'ConnectOptions' }[
        operation
      ],
    },
  }
}

function inVersion(object: ApiObject, { resource }: AdmissionReview): Json {
  return { ...object, apiVersion: resource.apiVersion, kind: resource.kind }
}

function applyPatch(webhook: Webhook, review: AdmissionReview, patch: string): ApiObject {
  let patched: unknown
  try {
    patched = cloneJson(applyJsonPatch(review.object, JSON.parse(Buffer.from(patch, 'base64').toString())))
  } catch (error) {
    throw internal(
      `failed calling webhook ${JSON.stringify(webhook.name)}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (!isRecord(patched))
    throw internal(`webhook ${JSON.stringify(webhook.name)} returned a patch that leaves no object`)
  const { resource } = review
  const object = checkObject(patched, resource, 'Ignore', [], () => undefined)
  resource.strategy.applyDefaults?.(object)
  if (resource.isCustom) resource.compiled()?.applyDefaults(object)
  // A webhook cannot change the identity of the object.
  const { uid, name, namespace } = (review.object as ApiObject).metadata
  return withMetadata(object, {
    ...(uid !== undefined && { uid }),
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
  })
}

function denial(name: string, status: unknown): ApiError {
  const denied = `admission webhook ${JSON.stringify(name)} denied the request`
  const message = getPath(status, 'message')
  const reason = getPath(status, 'reason')
  const code = Number(getPath(status, 'code') ?? 0)
  const text =
    typeof message === 'string' && message !== ''
      ? `${denied}: ${message}`
      : typeof reason === 'string' && reason !== ''
        ? `${denied}: ${reason}`
        : `${denied} without explanation`
  const details = getPath(status, 'details')
  return new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: text,
    ...(typeof reason === 'string' && reason !== '' && { reason }),
    ...(isRecord(details) ? { details } : {}),
    code: code < 400 ? 400 : code,
  })
}

const covers = (list: unknown, value: string): boolean => asStrings(list).some((item) => item === '*' || item === value)

function matchesRules(
  webhook: Json,
  apiGroup: string,
  version: string,
  plural: string,
  subresource: string,
  operation: Operation,
  isNamespaced: boolean,
): boolean {
  const isEquivalent = webhook['matchPolicy'] !== 'Exact'
  return asRecords(webhook['rules']).some((rule) => {
    const scope = rule['scope'] ?? '*'
    const isInScope = scope === '*' || scope === (isNamespaced ? 'Namespaced' : 'Cluster')
    const isVersion = covers(rule['apiVersions'], version) || isEquivalent
    const isResource = asStrings(rule['resources']).some((pattern) => {
      const [name = '', part = ''] = pattern.split('/')
      if (name !== '*' && name !== plural) return false
      return part === subresource || (part === '*' && pattern.includes('/'))
    })
    return (
      isInScope &&
      isVersion &&
      isResource &&
      covers(rule['operations'], operation) &&
      covers(rule['apiGroups'], apiGroup)
    )
  })
}

function matchesObject(webhook: Json, review: AdmissionReview): boolean {
  const selector = compileLabelSelector(webhook['objectSelector'])
  if (selector.isEmpty) return true
  return [review.object, review.oldObject].some(
    (object) => object !== undefined && selector.matches(object.metadata.labels),
  )
}
