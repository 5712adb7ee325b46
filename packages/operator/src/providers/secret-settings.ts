/**
 * Provider configurations from the keys of a Secret, or from environment variables of the same names: for DNSProvider
 * objects and for static providers. Pure: secrets are referenced by key, and read when the provider is created.
 */
import { ProviderConfig } from './config.ts'

export type SettingsResult =
  | { readonly config: ProviderConfig }
  /** What to change in the Secret. */
  | { readonly invalid: string }
  | { readonly unknownType: string }

type Values = Readonly<Record<string, string | undefined>>

/** Reads the keys of one type; `need` throws `MissingKey`. */
interface Keys {
  readonly need: (key: string) => string
  readonly find: (key: string) => string | undefined
  readonly list: (key: string) => string[] | undefined
}

class MissingKey extends Error {}

const TYPES: Readonly<Record<string, (keys: Keys) => object>> = {
  aws: ({ need, find, list }) => {
    need('AWS_ACCESS_KEY_ID')
    need('AWS_SECRET_ACCESS_KEY')
    const [zones, region, endpoint] = [list('ZONES'), find('AWS_REGION'), find('AWS_ENDPOINT_URL')]
    return {
      credentials: {
        accessKeyIdFrom: { env: 'AWS_ACCESS_KEY_ID' },
        secretAccessKeyFrom: { env: 'AWS_SECRET_ACCESS_KEY' },
        ...(find('AWS_SESSION_TOKEN') !== undefined && { sessionTokenFrom: { env: 'AWS_SESSION_TOKEN' } }),
      },
      ...(zones !== undefined && { zones }),
      ...(region !== undefined && { region }),
      ...(endpoint !== undefined && { endpoint }),
    }
  },
  rfc2136: ({ need, find, list }) => {
    const server = need('SERVER')
    need('ZONES')
    const name = find('TSIG_NAME')
    if (name !== undefined) need('TSIG_SECRET')
    return {
      server,
      zones: list('ZONES') ?? [],
      ...(name !== undefined && {
        key: { name, algorithm: find('TSIG_ALGORITHM') ?? 'hmac-sha256', secretFrom: { env: 'TSIG_SECRET' } },
      }),
    }
  },
  powerdns: ({ need, find, list }) => {
    const url = need('URL')
    need('API_KEY')
    const [serverId, zones] = [find('SERVER_ID'), list('ZONES')]
    return {
      url,
      apiKeyFrom: { env: 'API_KEY' },
      ...(serverId !== undefined && { serverId }),
      ...(zones !== undefined && { zones }),
    }
  },
  webhook: ({ need, list }) => {
    const zones = list('ZONES')
    return { url: need('URL'), ...(zones !== undefined && { zones }) }
  },
  coredns: ({ need, find, list }) => {
    const url = need('ETCD_URL')
    need('ZONES')
    const [prefix, username] = [find('ETCD_PREFIX'), find('ETCD_USERNAME')]
    if (username !== undefined) need('ETCD_PASSWORD')
    return {
      url,
      zones: list('ZONES') ?? [],
      ...(prefix !== undefined && { prefix }),
      ...(username !== undefined && { username, passwordFrom: { env: 'ETCD_PASSWORD' } }),
    }
  },
}

/** Types a DNSProvider may have, and `--providers` may name. */
export const SECRET_PROVIDER_TYPES: readonly string[] = Object.keys(TYPES)

export function providerSettings(type: string, name: string, values: Values): SettingsResult {
  const build = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined
  if (build === undefined) return { unknownType: type }
  const find = (key: string): string | undefined => (values[key] === '' ? undefined : values[key])
  const keys: Keys = {
    find,
    need(key) {
      const value = find(key)
      if (value === undefined) throw new MissingKey(`'${key}' required in secret`)
      return value
    },
    list: (key) =>
      find(key)
        ?.split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
  }
  try {
    const parsed = ProviderConfig.safeParse({ name, type, ...build(keys) })
    if (parsed.success) return { config: parsed.data }
    const [issue] = parsed.error.issues
    return { invalid: `${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}` }
  } catch (error) {
    if (error instanceof MissingKey) return { invalid: error.message }
    throw error
  }
}
