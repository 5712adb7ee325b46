/**
 * Authentication: bearer tokens, client certificates (already verified by the transport) or anonymous; and impersonation.
 */
import type { RequestHead, UserInfo } from '../exchange/exchange.ts'
import { badRequest, unauthorized } from '../exchange/status.ts'
import { TOKEN_ISSUER, type TokenVerdict } from './service-account-tokens.ts'

export const anonymous: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] }
export const admin: UserInfo = { name: 'admin', groups: ['system:masters', 'system:authenticated'] }

export interface Authenticator {
  /** Verifies a bearer token for one of these audiences; an empty list means the server itself. */
  reviewToken(token: string, audiences: readonly string[]): TokenVerdict
  /** Throws 401 for invalid credentials; a request without credentials is anonymous, if that is allowed. */
  authenticate(request: RequestHead): UserInfo
}

export interface AuthenticatorOptions {
  readonly tokens: ReadonlyMap<string, UserInfo>
  /** The user of requests without credentials; undefined rejects them. */
  readonly anonymous: UserInfo | undefined
  /** Checks ServiceAccount tokens. */
  readonly reviewToken: (token: string, audiences: readonly string[]) => TokenVerdict
}

function withAuthenticated(user: UserInfo): UserInfo {
  return user.groups.includes('system:authenticated')
    ? user
    : { ...user, groups: [...user.groups, 'system:authenticated'] }
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const reviewToken = (token: string, requested: readonly string[]): TokenVerdict => {
    const audiences = requested.length === 0 ? [TOKEN_ISSUER] : requested
    const user = options.tokens.get(token)
    if (user === undefined) return options.reviewToken(token, audiences)
    // Configured tokens have the audience of the server itself.
    return audiences.includes(TOKEN_ISSUER)
      ? { user: withAuthenticated(user), audiences: [TOKEN_ISSUER] }
      : { problem: 'invalid bearer token' }
  }
  return {
    reviewToken,
    authenticate(request) {
      // As in kube-apiserver, a valid certificate takes precedence over an invalid token.
      const { identity } = request
      if (typeof identity === 'object') return withAuthenticated(identity)
      const header = request.headers['authorization'] ?? ''
      if (header !== '') {
        const token = /^bearer (\S+)$/i.exec(header.trim())?.[1]
        const verdict = token === undefined ? undefined : reviewToken(token, [])
        if (verdict === undefined || 'problem' in verdict) throw unauthorized()
        return withAuthenticated(verdict.user)
      }
      if (identity === 'unverified' || options.anonymous === undefined) throw unauthorized()
      return options.anonymous
    },
  }
}

const EXTRA_PREFIX = 'impersonate-extra-'

/**
 * The identities that a request impersonates; each requires the verb `impersonate`. Throws BadRequest for groups or another
 * attribute without a user: the request would have the permissions of the caller.
 */
export function impersonationsIn({ headers }: RequestHead): { resource: string; namespace: string; name: string }[] {
  const user = headers['impersonate-user'] ?? ''
  if (user === '') {
    refuseWithoutUser(headers)
    return []
  }
  const [, namespace, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? []
  const target =
    namespace === undefined || account === undefined
      ? { resource: 'users', namespace: '', name: user }
      : { resource: 'serviceaccounts', namespace, name: account }
  return [target, ...requestedGroups(headers).map((name) => ({ resource: 'groups', namespace: '', name }))]
}

/** With the text of kube-apiserver, which prints the requested user as a Go value. */
function refuseWithoutUser(headers: RequestHead['headers']): void {
  const list = (values: readonly string[]): string => `[]string{${values.map((one) => JSON.stringify(one)).join(', ')}}`
  const uid = headers['impersonate-uid'] ?? ''
  const groups = requestedGroups(headers)
  const extra = Object.entries(headers)
    .filter(([name]) => name.startsWith(EXTRA_PREFIX))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value = '']) => `${JSON.stringify(name.slice(EXTRA_PREFIX.length))}:${list(value.split(', '))}`)
  if (uid === '' && groups.length === 0 && extra.length === 0) return
  const groupText = groups.length === 0 ? '[]string(nil)' : list(groups)
  const extraText = extra.length === 0 ? '(nil)' : `{${extra.join(', ')}}`
  throw badRequest(
    `requested &user.DefaultInfo{Name:"", UID:${JSON.stringify(uid)}, Groups:${groupText}, Extra:map[string][]string${extraText}} without impersonating a user name`,
  )
}

function requestedGroups(headers: RequestHead['headers']): string[] {
  return (headers['impersonate-group'] ?? '')
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '')
}

/** The user of the Impersonate-* headers. Authorization of the impersonation is separate. */
export function impersonate(user: UserInfo, request: RequestHead): UserInfo {
  const name = request.headers['impersonate-user']
  if (name === undefined || name === '') return user
  const groups = requestedGroups(request.headers)
  const serviceAccount = /^system:serviceaccount:([^:]+):[^:]+$/.exec(name)
  const implied =
    serviceAccount === null ? [] : ['system:serviceaccounts', `system:serviceaccounts:${serviceAccount[1]}`]
  const known = groups.length > 0 ? groups : implied
  return { name, groups: name === 'system:anonymous' ? ['system:unauthenticated'] : [...known, 'system:authenticated'] }
}
