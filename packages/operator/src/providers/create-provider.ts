/** Creates providers from the configuration. Each type is imported only when it is configured. */
import { redactingProvider } from './redaction.ts'
import { readFile } from 'node:fs/promises'
import { isIPv4, isIPv6 } from 'node:net'
import type { Client } from '@seamark/kube'
import { Secret as SecretKind } from '@seamark/kube'
import type { ProviderConfig, SecretRef } from './config.ts'
import { ProviderError, RecordsError } from '../rrset/error.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'
import type { Provider } from './provider.ts'

export interface ProviderDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  /** For Secrets by name, and for `dnsendpoint`. */
  readonly client?: Client
}

/** Reads one secret by reference. Its content is never part of an error. */
export async function readSecret(ref: SecretRef, { env, client }: ProviderDeps): Promise<string> {
  if ('env' in ref) {
    const value = env[ref.env]
    if (value === undefined || value === '') throw misconfigured(`the environment variable ${ref.env} is not set`)
    return value
  }
  if ('file' in ref) {
    const text = await readFile(ref.file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
      throw misconfigured(`the secret file ${ref.file} cannot be read: ${cause.code ?? ''}`)
    })
    return text.replace(/\r?\n$/, '')
  }
  if (client === undefined) throw misconfigured(`Secret ${ref.secret} needs a cluster; use env or file`)
  const found = await client.find(SecretKind, ref.secret)
  const data = found?.data?.[ref.key]
  if (found === undefined) throw misconfigured(`Secret ${ref.secret} does not exist; create it with the key ${ref.key}`)
  if (data === undefined) throw misconfigured(`Secret ${ref.secret} exists and has no key ${ref.key}`)
  return Buffer.from(data, 'base64').toString('utf8')
}

function misconfigured(why: string): ProviderError {
  return new ProviderError('ProviderMisconfigured', 'later', why)
}

/** `192.0.2.1`, `192.0.2.1:5353`, `[2001:db8::1]:53` */
export function parseServer(text: string): { address: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text)
  const address = match?.[1] ?? match?.[2] ?? text
  const port = Number(match?.[3] ?? 53)
  if ((!isIPv4(address) && !isIPv6(address)) || port > 65_535) {
    throw new RecordsError('CONFIG_INVALID', `'${text}' is not ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT`)
  }
  return { address, port }
}

export function canonicalZones(zones: readonly string[]): string[] {
  return zones.map((zone) => {
    const name = canonicalName(zone)
    if (isInvalid(name)) throw new RecordsError('CONFIG_INVALID', `zone '${zone}': ${name.invalid}`)
    return name
  })
}

const REMEMBERED_TOKENS = 4

interface Credentials {
  /** Reads one that errors must not contain. */
  readonly readHidden: (ref: SecretRef) => Promise<string>
  /** A service gave one. */
  readonly onToken: (token: string) => void
}

/** No error of the provider contains a secret that it was created with, or that a service gave for it. */
export async function createProvider(config: ProviderConfig, deps: ProviderDeps): Promise<Provider> {
  const secrets: string[] = []
  const tokens: string[] = []
  const readHidden = async (ref: SecretRef): Promise<string> => {
    const secret = await readSecret(ref, deps)
    secrets.push(secret)
    return secret
  }
  /** Tokens are renewed: the one before may still be repeated. */
  const onToken = (token: string): void => {
    tokens.push(token)
    secrets.push(token)
    const expired = tokens.length > REMEMBERED_TOKENS ? tokens.shift() : undefined
    if (expired !== undefined) secrets.splice(secrets.indexOf(expired), 1)
  }
  const provider = await openProvider(config, deps, { readHidden, onToken })
  return redactingProvider(provider, secrets)
}

async function openProvider(
  config: ProviderConfig,
  deps: ProviderDeps,
  { readHidden, onToken }: Credentials,
): Promise<Provider> {
  const rate = config.requestsPerSecond === undefined ? {} : { requestsPerSecond: config.requestsPerSecond }
  const { name } = config
  switch (config.type) {
    case 'memory': {
      const { memoryProvider } = await import('./memory.ts')
      return memoryProvider({ name, zones: canonicalZones(config.zones) })
    }
    case 'rfc2136': {
      const [{ rfc2136Provider }, { TsigKey }] = await Promise.all([import('./rfc2136.ts'), import('@seamark/dns')])
      const keyOf = async (key: typeof config.key) =>
        key === undefined ? {} : { key: new TsigKey(key.name, key.algorithm, await readHidden(key.secretFrom)) }
      const transfer =
        config.transfer === undefined
          ? {}
          : {
              transfer: {
                ...(config.transfer.server !== undefined && { server: parseServer(config.transfer.server) }),
                ...(await keyOf(config.transfer.key)),
              },
            }
      return rfc2136Provider({
        name,
        server: parseServer(config.server),
        zones: canonicalZones(config.zones),
        ...(await keyOf(config.key)),
        ...transfer,
        ...rate,
      })
    }
    case 'powerdns': {
      const { powerdnsProvider } = await import('./powerdns.ts')
      const zones = config.zones === undefined ? {} : { zones: canonicalZones(config.zones) }
      return powerdnsProvider({
        name,
        url: config.url,
        serverId: config.serverId,
        apiKey: await readHidden(config.apiKeyFrom),
        ...zones,
        ...rate,
      })
    }
    case 'aws': {
      const { awsProvider } = await import('./route53/aws.ts')
      const given = config.credentials
      const credentials =
        given === undefined
          ? {}
          : {
              credentials: {
                accessKeyId: await readSecret(given.accessKeyIdFrom, deps),
                secretAccessKey: await readHidden(given.secretAccessKeyFrom),
                ...(given.sessionTokenFrom === undefined
                  ? {}
                  : { sessionToken: await readHidden(given.sessionTokenFrom) }),
              },
            }
      return awsProvider({
        name,
        ...credentials,
        ...(config.zones === undefined
          ? {}
          : { zones: config.zones.map((zone) => (zone.includes('.') ? (canonicalZones([zone])[0] ?? zone) : zone)) }),
        ...(config.account !== undefined && { account: config.account }),
        ...(config.region !== undefined && { region: config.region }),
        ...(config.endpoint !== undefined && { endpoint: config.endpoint }),
        ...(config.visibility !== undefined && { visibility: config.visibility }),
        ...rate,
      })
    }
    case 'webhook': {
      const { webhookProvider } = await import('./webhook/webhook.ts')
      const zones = config.zones === undefined ? {} : { zones: canonicalZones(config.zones) }
      return webhookProvider({ name, url: config.url, defaultTtl: config.defaultTtl, ...zones, ...rate })
    }
    case 'coredns': {
      const { corednsProvider } = await import('./coredns/coredns.ts')
      const { username, passwordFrom } = config
      return corednsProvider({
        name,
        url: config.url,
        prefix: config.prefix,
        onToken,
        zones: canonicalZones(config.zones),
        ...(username !== undefined &&
          passwordFrom !== undefined && { credentials: { username, password: await readHidden(passwordFrom) } }),
        ...rate,
      })
    }
    case 'dnsendpoint': {
      const { dnsEndpointProvider } = await import('./dnsendpoint.ts')
      if (deps.client === undefined) throw misconfigured(`provider ${name} writes DNSEndpoints and needs a cluster`)
      return dnsEndpointProvider({
        name,
        client: deps.client,
        namespace: config.namespace,
        zones: canonicalZones(config.zones),
      })
    }
  }
}
