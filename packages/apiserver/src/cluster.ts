/**
 * One logical cluster: its store, resources, watches, controllers, and the request handler.
 *
 * Flow of a request: authenticate → request info → impersonate → authorize → faults → handler. Every error thrown by a
 * handler becomes a Status.
 */
import type { KeyObject } from 'node:crypto'
import { Admission, type AdmissionHook } from './admission/admission.ts'
import {
  type Authenticator,
  type AuthenticatorOptions,
  createAuthenticator,
  impersonate,
  impersonationsIn,
} from './auth/authenticate.ts'
import { type Backend, type Call, readView, readWriteOptions, warningHeaders } from './handlers/call.ts'
import { type Clock } from './clock.ts'
import { decodeObject } from './codec/decode.ts'
import { deleteCollection, deleteObject } from './handlers/delete.ts'
import { Discovery } from './handlers/discovery.ts'
import { encodeObject } from './codec/encode.ts'
import {
  type Admitted,
  type ApiRequest,
  type ApiResponse,
  jsonResponse,
  type RequestHead,
  statusResponse,
  textResponse,
  type UserInfo,
} from './exchange/exchange.ts'
import { Faults, DroppedResponse } from './faults.ts'
import { OpenApiRoutes } from './handlers/openapi.ts'
import { applyDefaults, patchObject } from './handlers/patch.ts'
import { getObject, listObjects } from './handlers/read.ts'
import type { ApiObject } from './codec/object-shape.ts'
import { Registry } from './resource/registry.ts'
import { readRequestInfo, type RequestInfo } from './exchange/request-info.ts'
import { keyFor } from './resource/resource.ts'
import {
  ApiError,
  badRequest,
  forbidden,
  internal,
  methodNotAllowed,
  notFound,
  unclassified,
  unknownPath,
} from './exchange/status.ts'
import { type Durability, DurableSink } from './store/durability.ts'
import type { RestoredCluster } from './data/data-directory.ts'
import { StoreRefusal } from './store/store-refusal.ts'
import { Store } from './store/store.ts'
import { builtinStrategy } from './strategies/builtin-strategy.ts'
import { serverVersion } from './version.ts'
import { WatchHub } from './store/watch-hub.ts'
import { watchObjects } from './handlers/watch.ts'
import { createObject, updateObject } from './handlers/write.ts'
import { ownFields } from './handlers/field-ownership.ts'
import { isAllowed, isRouted } from './handlers/routes.ts'
import { bootstrap, bootstrapService } from './bootstrap.ts'
import { Webhooks } from './admission/webhooks.ts'
import { readConverter } from './crd/conversion.ts'
import { DefinitionController } from './crd/definition-controller.ts'
import type { ResolveService } from './admission/webhook-client.ts'
import type { Controller } from './controllers/controller.ts'
import { EventExpiry } from './controllers/event-expiry.ts'
import { GarbageCollector } from './controllers/garbage-collector.ts'
import { NamespaceController } from './controllers/namespace-controller.ts'
import { ServiceAccountController } from './controllers/service-account-controller.ts'
import { confirmGrant } from './auth/escalation.ts'
import { Rbac } from './auth/rbac.ts'
import { answerReview, isReview } from './handlers/reviews.ts'
import { serveBinding, serveEviction, serveKubelet } from './handlers/pod-subresources.ts'
import { serveScale } from './handlers/scale.ts'
import { serveTokenRequest, TokenIssuer } from './auth/service-account-tokens.ts'

export interface ClusterOptions {
  readonly name: string
  readonly clock: Clock
  readonly random: () => number
  readonly newUid: () => string
  /** Users beside ServiceAccounts. */
  readonly users: Omit<AuthenticatorOptions, 'reviewToken'>
  readonly admission: readonly AdmissionHook[]
  readonly historyLimit?: number
  readonly historyBytes?: number
  /** Maximum bytes of all objects. @default 2 GiB */
  readonly storeBytes?: number
  /** The functions of kube-controller-manager: garbage collection, namespace deletion, default ServiceAccounts. */
  readonly hasControllers: boolean
  /** RBAC is enforced; otherwise every request is allowed. */
  readonly isAuthorizing: boolean
  /** Base URLs of Services that webhooks name. */
  readonly resolveService: ResolveService
  /** CA certificate of the server, PEM, for kube-root-ca.crt. */
  readonly rootCa: () => string
  readonly onError: (error: unknown) => void
  /** Where objects are made durable, and those of an earlier process. @default in memory only */
  readonly data?: { readonly durability: Durability; readonly restored: RestoredCluster | undefined }
  /** Signs ServiceAccount tokens. @default created when the first token is issued */
  readonly tokenKey?: KeyObject
}

export class Cluster implements Backend {
  readonly name: string
  readonly clock: Clock
  readonly random: () => number
  readonly newUid: () => string
  readonly store: Store
  readonly registry: Registry
  readonly faults: Faults
  readonly hub: WatchHub
  readonly admission: Admission
  readonly #authenticator: Authenticator
  readonly #discovery: Discovery
  readonly #openApi: OpenApiRoutes
  readonly #onError: (error: unknown) => void
  readonly #rbac: Rbac
  readonly #tokens: TokenIssuer
  readonly #isAuthorizing: boolean
  readonly #controllers: Controller[] = []
  /** Address at which clients reach the server, for discovery. */
  address = '127.0.0.1:6443'

  constructor(options: ClusterOptions) {
    this.name = options.name
    this.clock = options.clock
    this.random = options.random
    this.newUid = options.newUid
    this.#onError = options.onError
    this.store = new Store({
      clock: options.clock,
      ...(options.historyLimit !== undefined && { historyLimit: options.historyLimit }),
      ...(options.historyBytes !== undefined && { historyBytes: options.historyBytes }),
      ...(options.data !== undefined && { durability: options.data.durability }),
      ...(options.storeBytes !== undefined && { storeBytes: options.storeBytes }),
    })
    this.registry = new Registry(this.store, builtinStrategy)
    this.#tokens = new TokenIssuer(options.clock, this.store, options.tokenKey)
    this.#authenticator = createAuthenticator({
      ...options.users,
      reviewToken: (token, audiences) => this.#tokens.review(token, audiences),
    })
    this.faults = new Faults(this.store, options.random)
    this.hub = new WatchHub(options.clock, this.faults)
    this.admission = new Admission(options.admission, new Webhooks(this.store, options.resolveService))
    this.#discovery = new Discovery(this.registry)
    this.#openApi = new OpenApiRoutes(this.registry)
    this.#rbac = new Rbac(this.store)
    this.#isAuthorizing = options.isAuthorizing
    const context = { backend: this, onError: options.onError }
    this.#controllers.push(
      new EventExpiry(context),
      new DefinitionController(context, (definition) => readConverter(definition, options.resolveService)),
    )
    if (options.hasControllers) {
      this.#controllers.push(
        new GarbageCollector(context),
        new NamespaceController(context),
        new ServiceAccountController(context, options.rootCa),
      )
    }
    // Before the first write, and after everything that derives state from objects has subscribed to them.
    const restored = options.data?.restored
    if (restored !== undefined) this.store.restore(restored.objects, restored.revision)
    bootstrap(this)
    bootstrapService(this).catch(options.onError)
  }

  async handle(request: ApiRequest): Promise<ApiResponse> {
    const admitted = this.admit(request)
    return typeof admitted === 'function' ? await admitted(request.body) : admitted
  }

  admit(head: RequestHead): ApiResponse | Admitted {
    try {
      const info = readRequestInfo(head.method, head.path, head.query)
      if (info === undefined) throw badRequest('malformed path')
      const caller = this.#authenticator.authenticate(head)
      for (const { resource, namespace, name } of impersonationsIn(head)) {
        const attributes = { ...info, isResource: true, verb: 'impersonate', group: '', resource, subresource: '' }
        this.#authorize({ ...attributes, namespace, name }, caller)
      }
      const user = impersonate(caller, head)
      // Before any lookup: an unauthorized user cannot find out whether a resource exists.
      this.#authorize(info, user)
      return async (body) => {
        try {
          const request: ApiRequest = { ...head, body }
          return await this.#whenDurable(
            info.isResource ? await this.#answerResource(request, info, user) : await this.#answerOther(request, info),
          )
        } catch (error) {
          return this.#failureResponse(error)
        }
      }
    } catch (error) {
      return this.#failureResponse(error)
    }
  }

  /** A client sees nothing that a crash could take back. */
  async #whenDurable(response: ApiResponse): Promise<ApiResponse> {
    const { durability } = this.store
    if (durability === undefined) return response
    if (response.kind === 'stream')
      return { ...response, start: (sink) => response.start(new DurableSink(sink, durability)) }
    await durability.pending()
    return response
  }

  #failureResponse(error: unknown): ApiResponse {
    if (error instanceof ApiError) return statusResponse(error.status, error.headers)
    if (error instanceof DroppedResponse) throw error
    if (error instanceof StoreRefusal) return statusResponse(unclassified(error.message).status)
    this.#onError(error)
    return statusResponse(internal(error instanceof Error ? error.message : 'unknown error').status)
  }

  #authorize(info: RequestInfo, user: UserInfo): void {
    if (!this.#isAuthorizing) return
    const { isAllowed } = this.#rbac.decide({ ...info, user })
    if (!isAllowed) throw refusal(info, user)
  }

  confirmGrant({ resource, info, user }: Call, object: ApiObject, old: ApiObject | undefined): void {
    if (!this.#isAuthorizing || resource.group !== 'rbac.authorization.k8s.io') return
    const { plural } = resource
    confirmGrant(this.#rbac, { user, plural, namespace: info.namespace, name: info.name, object, old })
  }

  async #answerOther(request: ApiRequest, info: RequestInfo): Promise<ApiResponse> {
    switch (info.path) {
      case '/healthz':
      case '/livez':
      case '/readyz':
        return textResponse(200, 'ok')
      case '/version':
      case '/version/':
        return jsonResponse(200, serverVersion)
    }
    const found = info.path.startsWith('/openapi/')
      ? await this.#openApi.respond(info.path, request.headers)
      : this.#discovery.respond(info.path, request.headers, this.address)
    return found ?? textResponse(404, '404 page not found\n')
  }

  async #answerResource(request: ApiRequest, info: RequestInfo, user: UserInfo): Promise<ApiResponse> {
    const resource = this.registry.find(info.group, info.version, info.resource)
    if (resource === undefined) {
      if (!this.registry.isBuiltinGroup(info.group) && !this.registry.hasGroupVersion(info.group, info.version))
        return textResponse(404, '404 page not found\n')
      throw unknownPath()
    }
    const call: Call = { backend: this, request, info, resource, user, warnings: [] }
    const delayMs = this.faults.delayMs(call)
    if (delayMs > 0) await new Promise<void>((resolve) => this.clock.schedule(delayMs, resolve))
    const isDropped = this.faults.checkRequest(call)
    const response = await this.#dispatch(call).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error
      // Warnings are returned with errors, too.
      return statusResponse(error.status, { ...error.headers, ...warningHeaders(call) })
    })
    if (isDropped) throw new DroppedResponse('the answer is lost by a fault rule')
    return response
  }

  async #dispatch(call: Call): Promise<ApiResponse> {
    const { info, resource } = call
    if (!isRouted(resource, info)) throw unknownPath()
    if (info.subresource !== '' && !resource.subresources.includes(info.subresource)) {
      throw resource.isCustom ? notFound(resource, info.name) : unknownPath()
    }
    if (!isAllowed(resource, info) || call.request.method === 'HEAD') throw methodNotAllowed()
    const subresource = await this.#dispatchSubresource(call)
    if (subresource !== undefined) return subresource
    switch (info.verb) {
      case 'get':
        return await getObject(call)
      case 'list':
        return await listObjects(call)
      case 'watch':
        return watchObjects(call)
      case 'create':
        return await this.#create(call)
      case 'update':
        return await this.#update(call)
      case 'patch':
        return await patchObject(call)
      case 'delete':
        return await deleteObject(call)
      case 'deletecollection':
        return await deleteCollection(call)
      default:
        throw methodNotAllowed()
    }
  }

  /** Subresources that are not a representation of the object itself. */
  async #dispatchSubresource(call: Call): Promise<ApiResponse | undefined> {
    switch (call.info.subresource) {
      case 'scale':
        return await serveScale(call)
      case 'token':
        return await serveTokenRequest(call, this.#tokens)
      case 'eviction':
        return await serveEviction(call)
      case 'binding':
        return await serveBinding(call)
      case 'log':
      case 'exec':
      case 'attach':
      case 'portforward':
        return serveKubelet(call)
      default:
        return undefined
    }
  }

  async #create(call: Call): Promise<ApiResponse> {
    const view = readView(call)
    const options = readWriteOptions(call, 'create')
    const { body, headers } = call.request
    const object = await decodeObject(body, headers['content-type'], call.resource, options.fieldValidation, (text) =>
      call.warnings.push(text),
    )
    if (isReview(call.resource.group)) {
      const { status: _status, ...submitted } = object
      const managedFields = ownFields(call, options, submitted, undefined)
      const tracked = {
        ...submitted,
        metadata: { ...object.metadata, ...(managedFields.length !== 0 && { managedFields }) },
      } as ApiObject
      const answer = answerReview(call, tracked, this.#rbac, this.#authenticator)
      return jsonResponse(201, answer, warningHeaders(call))
    }
    applyDefaults(call, object)
    const stored = await createObject(call, object, options)
    return await encodeObject(view, stored, 201, warningHeaders(call))
  }

  async #update(call: Call): Promise<ApiResponse> {
    const { resource, info, request } = call
    const view = readView(call)
    const options = readWriteOptions(call, 'update')
    const { body, headers } = request
    const object = await decodeObject(body, headers['content-type'], resource, options.fieldValidation, (text) =>
      call.warnings.push(text),
    )
    applyDefaults(call, object)
    const isAbsent = resource.collection.get(keyFor(resource, info.namespace, info.name)) === undefined
    if (isAbsent && resource.strategy.allowsCreateOnUpdate === true && info.subresource === '') {
      if (object.metadata.name !== info.name) {
        throw badRequest(
          `the name of the object (${object.metadata.name ?? ''}) does not match the name on the URL (${info.name})`,
        )
      }
      return await encodeObject(view, await createObject(call, object, options), 201, warningHeaders(call))
    }
    const stored = await updateObject(
      call,
      { build: () => object, failsOnRace: (object.metadata.resourceVersion ?? '') !== '' },
      options,
    )
    return await encodeObject(view, stored, 200, warningHeaders(call))
  }

  close(): void {
    for (const controller of this.#controllers) controller.close()
    this.hub.close()
  }
}

/** `User "x" cannot list resource "services" in API group "" in the namespace "web"`. */
function refusal(info: RequestInfo, user: UserInfo): ApiError {
  const who = JSON.stringify(user.name)
  if (!info.isResource)
    return forbidden({ group: '', plural: '' }, '', `User ${who} cannot ${info.verb} path ${JSON.stringify(info.path)}`)
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`
  const where = info.namespace === '' ? ' at the cluster scope' : ` in the namespace ${JSON.stringify(info.namespace)}`
  const why = `User ${who} cannot ${info.verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(info.group)}${where}`
  return forbidden({ group: info.group, plural: info.resource }, info.name, why)
}
