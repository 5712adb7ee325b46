/**
 * The `dns` section of the manager's configuration: the authoritative server inside `seamark run` and `seamark dnslb`.
 * TSIG secrets are referenced (environment variable, file, or key of a Secret), never written into the configuration.
 */
import { DnsError, fqdn, REGION_FIELDS } from '@seamark/dns'
import { isIP } from 'node:net'
import { LIVE } from '../live-setting.ts'
import { z } from 'zod'
import { SecretRef } from '../providers/config.ts'

/** `:53`, `192.0.2.1:53`, `[2001:db8::1]:53`; the host may be a name where servers are named. */
const ADDRESS = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]*)):(\d{1,5})$/

export interface HostAndPort {
  readonly host: string
  readonly port: number
}

export function parseHostAndPort(text: string, defaultPort?: number): HostAndPort | undefined {
  const complete =
    defaultPort !== undefined && !ADDRESS.test(text) ? `${isIP(text) === 6 ? `[${text}]` : text}:${defaultPort}` : text
  const match = ADDRESS.exec(complete)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) return undefined
  return { host: match[1] ?? match[2] ?? '', port }
}

/** `NAME` or `NAME=VALUE`. */
export function splitPair(text: string): { readonly name: string; readonly value?: string } {
  const at = text.indexOf('=')
  return at === -1 ? { name: text } : { name: text.slice(0, at), value: text.slice(at + 1) }
}

/** Hosts are names of these characters: in a zone of others nothing would ever be published. `/`: RFC 2317. */
function isZoneName(text: string): boolean {
  return /^[a-z\d._/-]+$/i.test(text) && isName(text)
}

function isName(text: string): boolean {
  try {
    return fqdn(text) !== '.'
  } catch (error) {
    if (error instanceof DnsError) return false
    throw error
  }
}

const listenAddress = z.string().refine(
  (text) => {
    const parsed = parseHostAndPort(text)
    return parsed !== undefined && (parsed.host === '' || parsed.host === 'localhost' || isIP(parsed.host) !== 0)
  },
  { error: 'is no ADDRESS:PORT such as :53, 192.0.2.1:53 or [2001:db8::1]:53' },
)
const serverAddress = z
  .string()
  .refine((text) => (parseHostAndPort(text, 53)?.host ?? '') !== '', { error: 'is no HOST or HOST:PORT' })

export const DnsConfig = z
  .strictObject({
    listen: z
      .array(listenAddress)
      .default([])
      .describe('ADDRESS:PORT to answer DNS on, by UDP and TCP; empty: no DNS server'),
    zones: z
      .array(
        z.string().refine((text) => isZoneName(splitPair(text).name) && splitPair(text).value !== '', {
          error: 'is no zone: NAME, or NAME=FILE with a zone file',
        }),
      )
      .default([])
      .describe('zones to serve: NAME starts with an SOA and NS of its own, NAME=FILE from a zone file')
      .meta(LIVE),
    dataDir: z
      .string()
      .default('')
      .describe(
        "folder of the zones' snapshots and journals, of this process alone: other replicas copy from dns.primaries; empty: ConfigMaps in the manager's namespace, which all replicas read, with a local copy in dns.copyDir",
      ),
    copyDir: z
      .string()
      .default('')
      .describe(
        'folder of the local copy of zones in ConfigMaps, from which a process answers that starts while the API server is away; empty: in a Pod /var/lib/seamark/dns where that is writable, elsewhere none',
      ),
    nameServers: z
      .array(z.string().refine((text) => isName(splitPair(text).name), { error: 'is no NAME or NAME=ADDRESS' }))
      .default([])
      .describe(
        'NS records of a new zone: NAME or NAME=ADDRESS; empty: ns1 of the zone with the addresses of dns.listen',
      ),
    keys: z
      .array(
        z.strictObject({
          name: z.string().refine(isName, { error: 'is no key name' }),
          algorithm: z.enum(['hmac-sha256', 'hmac-sha384', 'hmac-sha512']).default('hmac-sha256'),
          secretFrom: SecretRef,
          allow: z.array(z.enum(['transfer', 'update'])).default(['transfer']),
        }),
      )
      .default([])
      .describe(
        'TSIG keys, each {name, algorithm, secretFrom, allow: [transfer, update]}; the first one signs NOTIFY and transfers',
      ),
    secondaries: z
      .array(serverAddress)
      .default([])
      .describe('HOST:PORT of servers that get NOTIFY after each change; a name is resolved to all its addresses'),
    primaries: z
      .array(serverAddress)
      .default([])
      .describe(
        'HOST:PORT of servers whose zones this process copies while it does not lead; a name is resolved to all its addresses',
      ),
    regionsFile: z
      .string()
      .default('')
      .describe(
        "regions of clients, for answers that depend on them: a file with lines 'RANGE REGION', such as '192.0.2.0/24 eu', or an MMDB",
      ),
    regionsFields: z
      .array(z.string().regex(/^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$/))
      .min(1)
      .default([...REGION_FIELDS])
      .describe('fields of an MMDB whose texts are regions, in lower case; the most specific first'),
    workers: z
      .number()
      .int()
      .min(1)
      .max(64)
      .default(1)
      .describe('threads that answer UDP on the same port; more than 1 needs Node 23.1, older ones use 1'),
    rateLimit: z
      .number()
      .int()
      .min(1)
      .max(1_000_000)
      .default(20)
      .describe('responses of one kind a second to one /24 or /56 before they are limited')
      .meta(LIVE),
  })
  .superRefine((config, context) => {
    if (config.dataDir !== '' && config.copyDir !== '')
      context.addIssue({
        code: 'custom',
        path: ['copyDir'],
        message: 'is for zones in ConfigMaps; with dns.dataDir the zones themselves are in a folder',
      })
    const names = config.zones.map((text) => splitPair(text).name.toLowerCase().replace(/\.$/, ''))
    const doubled = names.find((name, index) => names.indexOf(name) !== index)
    if (doubled !== undefined)
      context.addIssue({ code: 'custom', path: ['zones'], message: `the zone '${doubled}' is named twice` })
    if (config.primaries.length > 0 && config.keys.length === 0)
      context.addIssue({
        code: 'custom',
        path: ['keys'],
        message: 'needs a key: transfers from dns.primaries are signed',
      })
  })
export type DnsConfig = z.output<typeof DnsConfig>
