/**
 * ServiceAccount tokens: JWTs (RFC 7519, ES256) that the TokenRequest subresource issues and the server verifies.
 *
 * A token is valid while its signature, time and audience are, and while the ServiceAccount it was issued for and the
 * object it is bound to exist with the same UIDs.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomUUID, sign, verify } from 'node:crypto'
import type { Call } from '../handlers/call.ts'
import { type Clock, timestamp } from '../clock.ts'
import { decodeBody } from '../codec/decode.ts'
import { type ApiResponse, jsonResponse, type UserInfo } from '../exchange/exchange.ts'
import { invalidValue } from '../validation/metadata.ts'
import { builtinMediaTypes } from '../exchange/negotiate.ts'
import { asStrings, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import { badRequest, conflict, invalid, notFound } from '../exchange/status.ts'
import type { Store } from '../store/store.ts'

/** Issuer of the tokens, and the audience that the server itself accepts. */
export const TOKEN_ISSUER = 'https://kubernetes.default.svc'
const MIN_TOKEN_SECONDS = 600
const MAX_TOKEN_SECONDS = 2 ** 32

/** Objects that a token can be bound to, by kind: the claim that names the object and its collection. */
const BINDABLE: ReadonlyMap<string, { claim: 'pod' | 'secret' | 'node'; plural: string; isNamespaced: boolean }> =
  new Map([
    ['Pod', { claim: 'pod', plural: 'pods', isNamespaced: true }],
    ['Secret', { claim: 'secret', plural: 'secrets', isNamespaced: true }],
    ['Node', { claim: 'node', plural: 'nodes', isNamespaced: false }],
  ])

interface BoundObject {
  readonly claim: 'pod' | 'secret' | 'node'
  readonly name: string
  readonly uid: string
}

interface TokenRequestSpec {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly audiences: readonly string[]
  readonly seconds: number
  readonly bound: BoundObject | undefined
}

/** A valid token with the requested audiences that it has; or the reason why it is invalid. */
export type TokenVerdict =
  | { readonly user: UserInfo; readonly audiences: readonly string[] }
  | { readonly problem: string }

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export class TokenIssuer {
  readonly #clock: Clock
  readonly #store: Store
  #keys: { privateKey: KeyObject; publicKey: KeyObject } | undefined

  constructor(clock: Clock, store: Store, key?: KeyObject) {
    this.#clock = clock
    this.#store = store
    if (key !== undefined) this.#keys = { privateKey: key, publicKey: createPublicKey(key) }
  }

  /** Generated on first use: most clusters never issue a token. */
  #pair(): { privateKey: KeyObject; publicKey: KeyObject } {
    if (this.#keys === undefined) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      this.#keys = { privateKey, publicKey: createPublicKey(privateKey) }
    }
    return this.#keys
  }

  issue({ namespace, name, uid, audiences, seconds, bound }: TokenRequestSpec): string {
    const now = Math.floor(this.#clock.now() / 1000)
    const head = encode({ alg: 'ES256', typ: 'JWT' })
    const claims = encode({
      aud: audiences,
      exp: now + seconds,
      iat: now,
      iss: TOKEN_ISSUER,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace,
        serviceaccount: { name, uid },
        ...(bound !== undefined && { [bound.claim]: { name: bound.name, uid: bound.uid } }),
      },
      nbf: now,
      sub: `system:serviceaccount:${namespace}:${name}`,
    })
    const signature = sign('sha256', Buffer.from(`${head}.${claims}`), {
      key: this.#pair().privateKey,
      dsaEncoding: 'ieee-p1363',
    })
    return `${head}.${claims}.${signature.toString('base64url')}`
  }

  /** Verifies a token for one of the audiences. */
  review(token: string, audiences: readonly string[]): TokenVerdict {
    const claims = this.#verify(token)
    if (claims === undefined) return { problem: 'invalid bearer token' }
    const now = this.#clock.now() / 1000
    if (Number(claims['exp']) <= now || Number(claims['nbf']) > now + 60)
      return { problem: '[invalid bearer token, service account token has expired]' }
    if (claims['iss'] !== TOKEN_ISSUER) return { problem: 'invalid bearer token' }
    const own = asStrings(claims['aud'])
    const shared = audiences.filter((audience) => own.includes(audience))
    if (shared.length === 0) {
      const [has, expected] = [quoteList(own), quoteList(audiences)]
      return {
        problem: `[invalid bearer token, token audiences ${has} is invalid for the target audiences ${expected}]`,
      }
    }
    const namespace = String(getPath(claims, 'kubernetes.io', 'namespace'))
    const name = String(getPath(claims, 'kubernetes.io', 'serviceaccount', 'name'))
    const uid = String(getPath(claims, 'kubernetes.io', 'serviceaccount', 'uid'))
    if (this.#uidOf('serviceaccounts', `${namespace}/${name}`) !== uid)
      return { problem: '[invalid bearer token, service account token has been invalidated]' }
    const extra: Record<string, string[]> = {
      'authentication.kubernetes.io/credential-id': [`JTI=${String(claims['jti'])}`],
    }
    for (const { claim, plural, isNamespaced } of BINDABLE.values()) {
      const bound = getPath(claims, 'kubernetes.io', claim)
      if (!isRecord(bound)) continue
      const [boundName, boundUid] = [String(bound['name']), String(bound['uid'])]
      if (this.#uidOf(plural, isNamespaced ? `${namespace}/${boundName}` : boundName) !== boundUid)
        return { problem: '[invalid bearer token, service account token has been invalidated]' }
      if (claim === 'secret') continue
      extra[`authentication.kubernetes.io/${claim}-name`] = [boundName]
      extra[`authentication.kubernetes.io/${claim}-uid`] = [boundUid]
    }
    const user: UserInfo = {
      name: `system:serviceaccount:${namespace}:${name}`,
      uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      extra,
    }
    return { user, audiences: shared }
  }

  #uidOf(collection: string, key: string): string | undefined {
    return this.#store.collection(collection).get(key)?.object.metadata.uid
  }

  #verify(token: string): Json | undefined {
    const [head, claims, signature, ...rest] = token.split('.')
    if (
      this.#keys === undefined ||
      head === undefined ||
      claims === undefined ||
      signature === undefined ||
      rest.length > 0
    )
      return undefined
    const key = { key: this.#keys.publicKey, dsaEncoding: 'ieee-p1363' } as const
    if (!verify('sha256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))) return undefined
    try {
      const parsed = JSON.parse(Buffer.from(claims, 'base64url').toString()) as unknown
      return isRecord(parsed) ? parsed : undefined
    } catch {
      return undefined
    }
  }
}

/** As Go's %q prints a list. */
function quoteList(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`
}

/** The object that a token is bound to; undefined when none is requested. */
function readBound({ info, backend }: Call, reference: unknown): BoundObject | undefined {
  if (!isRecord(reference)) return undefined
  const read = (key: string): string => (typeof reference[key] === 'string' ? reference[key] : '')
  const [kind, apiVersion, name, wantedUid] = [read('kind'), read('apiVersion'), read('name'), read('uid')]
  const bindable = apiVersion === 'v1' ? BINDABLE.get(kind) : undefined
  if (bindable === undefined) {
    const type = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`
    throw badRequest(`cannot bind token to object of type ${type}, Kind=${kind}`)
  }
  const { claim, plural, isNamespaced } = bindable
  const stored = backend.store.collection(plural).get(isNamespaced ? `${info.namespace}/${name}` : name)
  if (stored === undefined) throw notFound({ group: '', plural }, name)
  const account = String(getPath(stored.object, 'spec', 'serviceAccountName') ?? '')
  if (kind === 'Pod' && account !== info.name) {
    throw badRequest(
      `cannot bind token for serviceaccount ${JSON.stringify(info.name)} to pod running with different serviceaccount name.`,
    )
  }
  const uid = stored.object.metadata.uid ?? ''
  if (wantedUid !== '' && wantedUid !== uid) {
    const why = `the UID in the bound object reference (${wantedUid}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict({ group: '', plural: kind }, name, why)
  }
  return { claim, name, uid }
}

/** POST serviceaccounts/<name>/token. */
export async function serveTokenRequest(call: Call, tokens: TokenIssuer): Promise<ApiResponse> {
  const { resource, info, request, backend } = call
  const decoded = await decodeBody(request.body, request.headers['content-type'], builtinMediaTypes).catch(
    (error: unknown) => {
      throw error instanceof SyntaxError ? badRequest(error.message) : error
    },
  )
  const stored = resource.collection.get(`${info.namespace}/${info.name}`)
  if (stored === undefined) throw notFound(resource, info.name)
  const requested = asStrings(getPath(decoded.value, 'spec', 'audiences'))
  const audiences = requested.length === 0 ? [TOKEN_ISSUER] : requested
  const seconds = Number(getPath(decoded.value, 'spec', 'expirationSeconds') ?? 3600)
  const field = 'spec.expirationSeconds'
  const kind = { group: 'authentication.k8s.io', kind: 'TokenRequest' }
  if (!(seconds >= MIN_TOKEN_SECONDS))
    throw invalid(kind, '', [invalidValue(field, seconds, 'may not specify a duration less than 10 minutes')])
  if (seconds > MAX_TOKEN_SECONDS)
    throw invalid(kind, '', [invalidValue(field, seconds, 'may not specify a duration larger than 2^32 seconds')])
  const reference = getPath(decoded.value, 'spec', 'boundObjectRef')
  const bound = readBound(call, reference)
  const nowMs = backend.clock.now()
  return jsonResponse(201, {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name: info.name, namespace: info.namespace, creationTimestamp: timestamp(nowMs) },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef: reference ?? null },
    status: {
      token: tokens.issue({
        namespace: info.namespace,
        name: info.name,
        uid: stored.object.metadata.uid ?? '',
        audiences,
        seconds,
        bound,
      }),
      expirationTimestamp: timestamp(nowMs + seconds * 1000),
    },
  })
}
