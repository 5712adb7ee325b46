/**
 * CoreDNS with its etcd plug-in: records as JSON in etcd, in the layout of SkyDNS, through etcd's JSON gateway (v3).
 *
 * `www.example.com.` is the folder `/skydns/com/example/www/`. Each value of an RRset is one key in it, named
 * `_sm-<type>-<hash of the value>`; a key of another writer is read as the record of its whole path. A batch is one
 * transaction, which compares that nothing below the names changed since they were read.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { ProviderError } from '../../rrset/error.ts'
import {
  canonicalSet,
  isInvalid,
  isWithin,
  type ObservedRRset,
  type RRset,
  sameSet,
  setKey,
} from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import { callHttp, failureOf, type HttpAnswer } from '../http-call.ts'
import type { Provider, ProviderZone } from '../provider.ts'
import { readService, toService } from './skydns-service.ts'

export interface CorednsOptions {
  readonly name: string
  /** `http://127.0.0.1:2379` */
  readonly url: string
  readonly zones: readonly string[]
  /** As CoreDNS' `path`. @default '/skydns' */
  readonly prefix?: string
  readonly credentials?: { readonly username: string; readonly password: string }
  /** Called with each token that etcd gives for the password: it is a credential, too. */
  readonly onToken?: (token: string) => void
  readonly requestsPerSecond?: number
  readonly fetch?: typeof globalThis.fetch
}

/** etcd's default limit of a transaction (`--max-txn-ops`) is 128 operations. */
const MAX_OPERATIONS = 120
const MAX_CHANGES = 30
const OWN_KEY = /^_sm-([a-z]+)-[0-9a-f]{16}$/

const kvSchema = z.object({ key: z.string(), value: z.string().default('') })
const rangeSchema = z.object({
  header: z.object({ revision: z.string() }),
  kvs: z.array(kvSchema).default([]),
})
const txnSchema = z.object({ succeeded: z.boolean().default(false) })
const tokenSchema = z.object({ token: z.string() })

/** One key in etcd and its content. */
interface Entry {
  readonly key: string
  readonly set: ObservedRRset
}

interface Reading {
  readonly revision: bigint
  readonly entries: readonly Entry[]
}

export function corednsProvider(options: CorednsOptions): Provider {
  const { credentials, fetch = globalThis.fetch } = options
  const prefix = (options.prefix ?? '/skydns').replace(/\/+$/, '')
  const base = options.url.replace(/\/+$/, '')
  let token: string | undefined

  async function post(path: string, body: unknown, signal: AbortSignal, isWrite: boolean): Promise<HttpAnswer> {
    const url = new URL(`${base}/v3/${path}`)
    if (credentials !== undefined && token === undefined && path !== 'auth/authenticate') {
      const { username, password } = credentials
      token = parse(tokenSchema, await post('auth/authenticate', { name: username, password }, signal, false)).token
      options.onToken?.(token)
    }
    const answer = await callHttp({
      method: 'POST',
      url,
      headers: token === undefined ? {} : { authorization: token },
      body,
      signal,
      fetch,
    }).catch((error: unknown) => {
      // A read that was perhaps executed did nothing.
      if (!isWrite && error instanceof ProviderError)
        throw new ProviderError('ProviderUnavailable', 'later', error.message, { cause: error })
      throw error
    })
    const failure = failureOf(answer, `POST ${url.pathname}`, isWrite, errorText(answer))
    if (failure === undefined) return answer
    // etcd answers an expired token, and wrong credentials, with its own codes.
    const isRefused = /invalid auth token|authentication failed|user name is empty/.test(failure.message)
    if (isRefused) token = undefined
    throw isRefused ? new ProviderError('CredentialsInvalid', 'later', failure.message) : failure
  }

  /** All keys below a name. */
  async function range(name: string, signal: AbortSignal): Promise<Reading> {
    const folder = `${pathOf(name)}/`
    // The key of another writer for exactly this name is `…/www`; what is below it begins with `…/www/`.
    const [exact, below] = await Promise.all([
      post('kv/range', { key: encode(pathOf(name)) }, signal, false),
      post('kv/range', { key: encode(folder), range_end: encode(endOf(folder)) }, signal, false),
    ])
    const answers = [exact, below].map((answer) => parse(rangeSchema, answer))
    const entries = answers.flatMap(({ kvs }) => kvs).flatMap(({ key, value }) => readEntry(decode(key), decode(value)))
    const revisions = answers.map(({ header }) => BigInt(header.revision))
    return { revision: revisions.reduce((a, b) => (a < b ? a : b)), entries }
  }

  function pathOf(name: string): string {
    const labels = name.replace(/\.$/, '').split('.').toReversed()
    return `${prefix}/${labels.join('/')}`
  }

  function readEntry(key: string, value: string): Entry[] {
    const segments = key.slice(prefix.length + 1).split('/')
    const own = OWN_KEY.exec(segments.at(-1) ?? '')
    const labels = own === null ? segments : segments.slice(0, -1)
    const name = `${labels.toReversed().join('.')}.`
    const service = readService(value, own?.[1]?.toUpperCase())
    if (service === undefined) return []
    const set = canonicalSet({ name, type: service.type, ttl: service.ttl, values: [service.value] })
    return isInvalid(set) ? [] : [{ key, set: own === null ? { ...set, opaque: 'a key of another writer' } : set }]
  }

  function keyFor(set: RRset, value: string): string {
    const hash = createHash('sha256').update(value).digest('hex').slice(0, 16)
    return `${pathOf(set.name)}/_sm-${set.type.toLowerCase()}-${hash}`
  }

  function checkZone({ name }: ProviderZone): void {
    if (!options.zones.includes(name))
      throw new ProviderError('ZoneNotFound', 'later', `zone ${name} is not configured for ${options.name}`)
  }

  async function transact(batch: readonly SetChange[], signal: AbortSignal): Promise<void> {
    const names = [...new Set(batch.map(({ from, to }) => (to ?? from)?.name ?? ''))]
    const readings = await Promise.all(names.map(async (name) => range(name, signal)))
    const compare: object[] = []
    const success: object[] = []
    for (const [index, name] of names.entries()) {
      const { revision } = readings[index] ?? { revision: 0n }
      const folder = `${pathOf(name)}/`
      const [key, range_end] = [encode(folder), encode(endOf(folder))]
      compare.push({ target: 'MOD', result: 'LESS', key, range_end, mod_revision: String(revision + 1n) })
    }
    for (const change of batch) {
      const subject = change.to ?? change.from
      if (subject === undefined) continue
      const { entries } = readings[names.indexOf(subject.name)] ?? { entries: [] }
      const present = entries.filter(({ set }) => set.name === subject.name && set.type === subject.type)
      if (!sameSet(merged(present.map(({ set }) => set))[0], change.from))
        throw new ProviderError('BaseMoved', 'moved', `${setKey(subject)}: etcd holds other values`)
      for (const { key } of present) {
        compare.push({ target: 'VERSION', result: 'GREATER', key: encode(key), version: '0' })
        success.push({ requestDeleteRange: { key: encode(key) } })
      }
    }
    const writes = batch.flatMap(({ to }) => (to === undefined ? [] : to.values.map((value) => putOf(to, value))))
    // A transaction must not change a key twice: a value that stays is only written.
    const written = new Set(writes.map(({ key }) => key))
    const deletes = (success as { requestDeleteRange: { key: string } }[]).filter(
      ({ requestDeleteRange }) => !written.has(requestDeleteRange.key),
    )
    const body = { compare, success: [...deletes, ...writes.map((put) => ({ requestPut: put }))] }
    const { succeeded } = parse(txnSchema, await post('kv/txn', body, signal, true))
    if (!succeeded) throw new ProviderError('BaseMoved', 'moved', `${names.join(', ')}: changed while it was written`)
  }

  function putOf(set: RRset, value: string): { key: string; value: string } {
    const service = toService(set.type, value, set.ttl)
    if (service === undefined)
      throw new ProviderError('RecordRejected', 'rejected', `${setKey(set)}: CoreDNS' etcd plug-in has no such record`)
    return { key: encode(keyFor(set, value)), value: encode(service) }
  }

  return {
    name: options.name,
    account: new URL(base).origin,
    capabilities: {
      isAtomic: true,
      comparesAndSwaps: true,
      readsByName: true,
      maxChanges: MAX_CHANGES,
      requestsPerSecond: options.requestsPerSecond ?? 200,
    },
    zones: async (signal) => {
      // The layout has no zones: the configured ones are served when etcd answers.
      for (const zone of options.zones.slice(0, 1)) await post('kv/range', { key: encode(pathOf(zone)) }, signal, false)
      return options.zones.map((name) => ({ id: name, name }))
    },
    async read(zone, names, signal, turn) {
      checkZone(zone)
      const asked = names === 'all' ? [zone.name] : [...names].filter((name) => isWithin(name, zone.name))
      const sets: ObservedRRset[] = []
      for (const [index, name] of asked.entries()) {
        if (index > 0) await turn?.()
        const { entries } = await range(name, signal)
        sets.push(...entries.map(({ set }) => set).filter((set) => names === 'all' || set.name === name))
      }
      return merged(sets)
    },
    fits: (batch) =>
      batch.reduce((sum, { from, to }) => sum + 1 + (from?.values.length ?? 0) + (to?.values.length ?? 0), 0) <=
      MAX_OPERATIONS,
    async apply(zone, batch, signal) {
      checkZone(zone)
      for (const { to } of batch) {
        const checked = to === undefined ? undefined : canonicalSet(to)
        if (isInvalid(checked))
          throw new ProviderError(
            'RecordRejected',
            'rejected',
            `${to === undefined ? '' : setKey(to)}: ${checked.invalid}`,
          )
      }
      await transact(batch, signal)
    },
  }
}

/** One set for each name and type; the smallest TTL, as a resolver would use it. */
function merged(sets: readonly ObservedRRset[]): ObservedRRset[] {
  const found = new Map<string, ObservedRRset>()
  for (const set of sets) {
    const before = found.get(setKey(set))
    const values = [...new Set([...(before?.values ?? []), ...set.values])].sort()
    const opaque = before?.opaque ?? set.opaque
    found.set(setKey(set), {
      ...set,
      values,
      ttl: Math.min(set.ttl, before?.ttl ?? set.ttl),
      ...(opaque !== undefined && { opaque }),
    })
  }
  return [...found.values()]
}

function encode(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64')
}

function decode(text: string): string {
  return Buffer.from(text, 'base64').toString('utf8')
}

/** The end of the range of all keys that begin with a text. */
function endOf(start: string): string {
  return `${start.slice(0, -1)}${String.fromCodePoint((start.codePointAt(start.length - 1) ?? 0) + 1)}`
}

function parse<T>(schema: z.ZodType<T>, answer: HttpAnswer): T {
  try {
    return schema.parse(JSON.parse(answer.text))
  } catch (cause) {
    throw new ProviderError('ProviderUnavailable', 'later', 'the answer is not what the etcd gateway gives', { cause })
  }
}

function errorText(answer: HttpAnswer): string {
  try {
    const { error, message } = JSON.parse(answer.text) as { error?: unknown; message?: unknown }
    return typeof message === 'string' ? message : typeof error === 'string' ? error : ''
  } catch {
    return ''
  }
}
