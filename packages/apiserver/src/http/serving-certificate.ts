/**
 * A CA and a serving certificate for one start of the server (X.509 v3, RFC 5280; ECDSA P-256, SHA-256).
 *
 * Encoded here to shorten the time until `ready`: loading @peculiar/x509 takes several times as long as the start of
 * Node itself (300 to 500 ms measured from sources). Everything that issues more than these two certificates uses
 * @seamark/kube/certificates.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto'
import { isIP, isIPv6 } from 'node:net'

const dayMs = 86_400_000
const skewMs = 300_000

const tag = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
  utcTime: 0x17,
  time: 0x18,
}

function der(type: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content)
  const { length } = body
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([type, ...size]), body])
}

const sequence = (...content: Buffer[]): Buffer => der(tag.sequence, ...content)

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const part of rest) {
    const groups = [part & 0x7f]
    for (let left = part >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80)
    bytes.push(...groups)
  }
  return der(tag.oid, Buffer.from(bytes))
}

const algorithm = sequence(oid('1.2.840.10045.4.3.2'))

function name(commonName: string): Buffer {
  return sequence(der(tag.set, sequence(oid('2.5.4.3'), der(tag.utf8, Buffer.from(commonName)))))
}

/** UTCTime up to 2049, GeneralizedTime after (RFC 5280 §4.1.2.5). */
function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return Number(text.slice(0, 4)) < 2050
    ? der(tag.utcTime, Buffer.from(text.slice(2)))
    : der(tag.time, Buffer.from(text))
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(isCritical ? [der(tag.boolean, Buffer.from([0xff]))] : []), der(tag.octets, value))
}

function addressBytes(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right]
  return Buffer.from(groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]))
}

function alternativeNames(names: readonly string[]): Buffer {
  return sequence(
    ...names.map((host) => (isIP(host) === 0 ? der(0x82, Buffer.from(host)) : der(0x87, addressBytes(host)))),
  )
}

interface Certificate {
  readonly subject: string
  readonly issuer: string
  readonly publicKey: KeyObject
  readonly signingKey: KeyObject
  readonly extensions: readonly Buffer[]
  readonly nowMs: number
  /** Validity. */
  readonly days: number
}

function certificate(request: Certificate): string {
  const serial = randomBytes(16)
  // Positive and of fixed length (RFC 5280 §4.1.2.2).
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  const content = sequence(
    der(0xa0, der(tag.integer, Buffer.from([2]))),
    der(tag.integer, serial),
    algorithm,
    name(request.issuer),
    sequence(time(request.nowMs - skewMs), time(request.nowMs + request.days * dayMs)),
    name(request.subject),
    request.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...request.extensions)),
  )
  const signature = sign('sha256', content, request.signingKey)
  const whole = sequence(content, algorithm, der(tag.bits, Buffer.from([0]), signature))
  return `-----BEGIN CERTIFICATE-----\n${whole
    .toString('base64')
    .replaceAll(/(.{64})/g, '$1\n')
    .trimEnd()}\n-----END CERTIFICATE-----\n`
}

/** SHA-1 of the key, only an identifier (RFC 5280 §4.2.1.2). */
function keyId(key: KeyObject): Buffer {
  return createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }).subarray(-65))
    .digest()
}

export interface ServingCertificate {
  readonly caPem: string
  readonly certPem: string
  readonly keyPem: string
}

/** A certificate authority that outlives one start of the server. */
export interface ServingAuthority {
  readonly name: string
  readonly caPem: string
  readonly keyPem: string
}

export function createServingAuthority(nowMs: number, days = 365): ServingAuthority {
  const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = `seamark-apiserver-ca-${randomBytes(4).toString('hex')}`
  const caPem = certificate({
    subject: issuer,
    issuer,
    publicKey: authority.publicKey,
    signingKey: authority.privateKey,
    nowMs,
    days,
    extensions: [
      extension('2.5.29.19', true, sequence(der(tag.boolean, Buffer.from([0xff])))),
      // keyCertSign and cRLSign.
      extension('2.5.29.15', true, der(tag.bits, Buffer.from([1, 0x06]))),
      extension('2.5.29.14', false, der(tag.octets, keyId(authority.publicKey))),
    ],
  })
  return { name: issuer, caPem, keyPem: authority.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** A certificate for a server with these names and addresses, valid for a year. @param authority a new one by default */
export function issueServingCertificate(
  hosts: readonly string[],
  nowMs: number,
  authority: ServingAuthority = createServingAuthority(nowMs),
): ServingCertificate {
  const serving = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signingKey = createPrivateKey(authority.keyPem)
  const certPem = certificate({
    subject: 'kube-apiserver',
    issuer: authority.name,
    publicKey: serving.publicKey,
    signingKey,
    nowMs,
    days: 365,
    extensions: [
      extension('2.5.29.19', true, sequence()),
      // digitalSignature.
      extension('2.5.29.15', true, der(tag.bits, Buffer.from([7, 0x80]))),
      extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'))),
      extension('2.5.29.35', false, sequence(der(0x80, keyId(createPublicKey(signingKey))))),
      extension('2.5.29.17', false, alternativeNames(hosts)),
    ],
  })
  return {
    caPem: authority.caPem,
    certPem,
    keyPem: serving.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
