/**
 * Review APIs: SelfSubjectReview, access reviews, rules reviews and TokenReview. RBAC always answers access reviews,
 * even when it is not enforced.
 */
import type { Authenticator } from '../auth/authenticate.ts'
import type { Call } from './call.ts'
import { timestamp } from '../clock.ts'
import type { UserInfo } from '../exchange/exchange.ts'
import { type ApiObject, asStrings, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import type { Attributes, Rbac } from '../auth/rbac.ts'
import { invalidValue } from '../validation/metadata.ts'
import type { Cause } from '../schema/model.ts'
import { badRequest, invalid } from '../exchange/status.ts'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function readAttributes(spec: unknown, user: UserInfo, needsUser = false): Attributes {
  const resource = getPath(spec, 'resourceAttributes')
  const other = getPath(spec, 'nonResourceAttributes')
  const causes: Cause[] = []
  if (isRecord(resource) && isRecord(other))
    causes.push(
      invalidValue(
        'spec.nonResourceAttributes',
        internalForm(other),
        'cannot be specified in combination with resourceAttributes',
      ),
    )
  else if (!isRecord(resource) && !isRecord(other)) {
    causes.push(
      invalidValue(
        'spec.resourceAttributes',
        null,
        'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
    )
  }
  if (needsUser && user.name === '' && user.groups.length === 0)
    causes.push(invalidValue('spec.user', '', 'at least one of user or group must be specified'))
  if (causes.length > 0) throw invalid({ group: 'authorization.k8s.io', kind: '' }, '', causes)
  const read = (key: string): string => text(getPath(resource, key))
  return {
    user,
    isResource: isRecord(resource),
    verb: isRecord(resource) ? read('verb') : text(getPath(other, 'verb')),
    path: text(getPath(other, 'path')),
    group: read('group'),
    resource: read('resource'),
    subresource: read('subresource'),
    namespace: read('namespace'),
    name: read('name'),
  }
}

/** Attributes in the format of kube-apiserver's internal type. */
function internalForm(other: Json): Json {
  return { Path: text(other['path']), Verb: text(other['verb']) }
}

function describeUser(user: UserInfo): Json {
  return {
    username: user.name,
    ...(user.uid !== undefined && { uid: user.uid }),
    groups: user.groups,
    ...(user.extra !== undefined && { extra: user.extra }),
  }
}

function rulesReview(rbac: Rbac, user: UserInfo, namespace: string): Json {
  const rules = user.groups.includes('system:masters')
    ? [
        { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
        { verbs: ['*'], nonResourceURLs: ['*'] },
      ]
    : rbac.granted(user, namespace).flatMap((granted) => granted.rules)
  return {
    resourceRules: rules
      .filter((rule) => asStrings(rule['resources']).length > 0)
      .map(({ verbs, apiGroups, resources, resourceNames }: Json) => ({
        verbs,
        apiGroups,
        resources,
        ...(resourceNames !== undefined && { resourceNames }),
      })),
    nonResourceRules: rules
      .filter((rule) => asStrings(rule['nonResourceURLs']).length > 0)
      .map(({ verbs, nonResourceURLs }: Json) => ({ verbs, nonResourceURLs })),
    incomplete: false,
  }
}

/** The review with its status filled in. */
export function answerReview(call: Call, review: ApiObject, rbac: Rbac, authenticator: Authenticator): ApiObject {
  const spec = review['spec']
  const { user } = call
  switch (review.kind ?? '') {
    case 'SelfSubjectReview':
      return {
        ...review,
        metadata: { ...review.metadata, creationTimestamp: timestamp(call.backend.clock.now()) },
        status: { userInfo: describeUser(user) },
      }
    case 'SelfSubjectAccessReview':
      return withDecision(review, rbac, readAttributes(spec, user))
    case 'SubjectAccessReview':
    case 'LocalSubjectAccessReview': {
      const attributes = readAttributes(
        spec,
        { name: text(getPath(spec, 'user')), groups: asStrings(getPath(spec, 'groups')) },
        true,
      )
      if (review.kind === 'LocalSubjectAccessReview') checkLocal(attributes, call.info.namespace)
      return withDecision(review, rbac, attributes)
    }
    case 'SelfSubjectRulesReview':
      if (text(getPath(spec, 'namespace')) === '') throw badRequest('no namespace on request')
      return { ...review, status: rulesReview(rbac, user, text(getPath(spec, 'namespace'))) }
    case 'TokenReview':
      if (text(getPath(spec, 'token')) === '') throw badRequest('token is required for TokenReview in authentication')
      return {
        ...review,
        status: tokenStatus(text(getPath(spec, 'token')), asStrings(getPath(spec, 'audiences')), authenticator),
      }
    default:
      throw badRequest(`unknown review ${review.kind ?? ''}`)
  }
}

/** A local access review is restricted to its own namespace. */
function checkLocal({ namespace }: Attributes, own: string): void {
  if (namespace === own) return
  const causes = invalidValue('spec.resourceAttributes.namespace', namespace, 'must match metadata.namespace')
  throw invalid({ group: 'authorization.k8s.io', kind: '' }, '', [causes])
}

function withDecision(review: ApiObject, rbac: Rbac, attributes: Attributes): ApiObject {
  const { isAllowed, reason } = rbac.decide(attributes)
  return { ...review, status: { allowed: isAllowed, ...(reason !== '' && { reason }) } }
}

function tokenStatus(token: string, audiences: readonly string[], authenticator: Authenticator): Json {
  const verdict = authenticator.reviewToken(token, audiences)
  return 'problem' in verdict
    ? { user: {}, error: verdict.problem }
    : { authenticated: true, user: describeUser(verdict.user), audiences: verdict.audiences }
}

/** True for review kinds, which are never stored. */
export function isReview(group: string): boolean {
  return group === 'authorization.k8s.io' || group === 'authentication.k8s.io'
}
