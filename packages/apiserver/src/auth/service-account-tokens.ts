/**
 * ServiceAccount tokens: JWTs (RFC 7519, ES256) that the TokenRequest subresource hands out and the server itself verifies.
 *
 * A token is good while its signature, time and audience are, and while the very ServiceAccount it was made for exists.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomUUID, sign, verify } from 'node:crypto'
import type { Call } from '../handlers/call.ts'
import { type Clock, timestamp } from '../clock.ts'
import { decodeBody } from '../codec/decode.ts'
import { type ApiResponse, jsonResponse, type UserInfo } from '../http/exchange.ts'
import { invalidValue } from '../validation/metadata.ts'
import { builtinMediaTypes } from '../http/negotiate.ts'
import { asStrings, getPath, isRecord, type Json } from '../codec/object-shape.ts'
import { badRequest, invalid, notFound } from '../http/status.ts'
import type { Collection } from '../store/store.ts'

const issuer = 'https://kubernetes.default.svc'
const shortestSeconds = 600
const longestSeconds = 2 ** 32

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export class TokenIssuer {
  readonly #clock: Clock
  readonly #accounts: Collection
  #keys: { privateKey: KeyObject; publicKey: KeyObject } | undefined

  constructor(clock: Clock, accounts: Collection) {
    this.#clock = clock
    this.#accounts = accounts
  }

  /** Made when first needed: most clusters never hand out a token. */
  #pair(): { privateKey: KeyObject; publicKey: KeyObject } {
    if (this.#keys === undefined) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      this.#keys = { privateKey, publicKey: createPublicKey(privateKey) }
    }
    return this.#keys
  }

  issue(namespace: string, name: string, uid: string, audiences: readonly string[], seconds: number): string {
    const now = Math.floor(this.#clock.now() / 1000)
    const head = encode({ alg: 'ES256', typ: 'JWT' })
    const claims = encode({
      aud: audiences,
      exp: now + seconds,
      iat: now,
      iss: issuer,
      jti: randomUUID(),
      'kubernetes.io': { namespace, serviceaccount: { name, uid } },
      nbf: now,
      sub: `system:serviceaccount:${namespace}:${name}`,
    })
    const signature = sign('sha256', Buffer.from(`${head}.${claims}`), {
      key: this.#pair().privateKey,
      dsaEncoding: 'ieee-p1363',
    })
    return `${head}.${claims}.${signature.toString('base64url')}`
  }

  /** The user behind a token; undefined when it is not good. */
  findUser(token: string): UserInfo | undefined {
    const claims = this.#verify(token)
    if (claims === undefined) return undefined
    const now = this.#clock.now() / 1000
    if (Number(claims['exp']) <= now || Number(claims['nbf']) > now + 60) return undefined
    if (claims['iss'] !== issuer || !asStrings(claims['aud']).includes(issuer)) return undefined
    const namespace = String(getPath(claims, 'kubernetes.io', 'namespace'))
    const name = String(getPath(claims, 'kubernetes.io', 'serviceaccount', 'name'))
    const uid = getPath(claims, 'kubernetes.io', 'serviceaccount', 'uid')
    if (this.#accounts.get(`${namespace}/${name}`)?.object.metadata.uid !== uid) return undefined
    return {
      name: `system:serviceaccount:${namespace}:${name}`,
      uid: String(uid),
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    }
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
  const asked = asStrings(getPath(decoded.value, 'spec', 'audiences'))
  const audiences = asked.length === 0 ? [issuer] : asked
  const seconds = Number(getPath(decoded.value, 'spec', 'expirationSeconds') ?? 3600)
  const field = 'spec.expirationSeconds'
  const kind = { group: 'authentication.k8s.io', kind: 'TokenRequest' }
  if (!(seconds >= shortestSeconds))
    throw invalid(kind, '', [invalidValue(field, seconds, 'may not specify a duration less than 10 minutes')])
  if (seconds > longestSeconds)
    throw invalid(kind, '', [invalidValue(field, seconds, 'may not specify a duration larger than 2^32 seconds')])
  const nowMs = backend.clock.now()
  return jsonResponse(201, {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name: info.name, namespace: info.namespace, creationTimestamp: timestamp(nowMs) },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef: null },
    status: {
      token: tokens.issue(info.namespace, info.name, stored.object.metadata.uid ?? '', audiences, seconds),
      expirationTimestamp: timestamp(nowMs + seconds * 1000),
    },
  })
}
