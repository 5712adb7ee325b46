/** Builds of plain objects, and what their tests read of the results. */
import { createAuthority } from '@seamark/kube/certificates'
import type { HTTPProxy } from '@seamark/kube/contour'
import type { Obj } from '@seamark/kube/object'
import { build } from '../src/build/build.ts'
import { BUILD_DEFAULTS } from '../src/draft/input.ts'
import { certificatesBySecret } from '../src/draft/secrets.ts'
import type { Ir, Route } from '../src/ir/model.ts'
import { object, objectsOf, service } from './index.ts'

type Build = ReturnType<typeof build>

export const run = (...all: Obj[]): Build => build(objectsOf(all), BUILD_DEFAULTS)

/** `host path → action` of every route, in order. */
export function routesOf(ir: Ir, protocol: 'http' | 'https' = 'http'): string[] {
  const listener = ir.listeners.find((each) => each.protocol === protocol)
  return (listener?.hosts ?? []).flatMap(({ host, routes }) => routes.map((route) => `${host} ${describeRoute(route)}`))
}

function describeRoute({ match: { path, method, headers, query }, action }: Route): string {
  const rest = [method, ...headers.map(({ name }) => name), ...query.map(({ name }) => `?${name}`)].filter(Boolean)
  const what =
    action.kind === 'forward'
      ? action.backends.map(({ cluster }) => cluster.split('/').slice(0, 3).join('/')).join('+')
      : action.status
  return `${path.kind} ${path.value}${rest.length === 0 ? '' : ` [${rest.join(' ')}]`} → ${what}`
}

type Status = NonNullable<HTTPProxy['status']>

export function statusOf(result: Build, key: string): Status {
  return result.statuses.find((each) => each.kind === 'HTTPProxy' && each.key === key)?.status as Status
}

/** `currentStatus type/reason: message` of the errors. */
export function verdict(result: Build, key: string): string[] {
  const status = statusOf(result, key)
  const [condition] = status.conditions ?? []
  return [
    status.currentStatus ?? '',
    ...(condition?.errors ?? []).map(({ type, reason, message }) => `${type}/${reason}: ${message}`),
  ]
}

export const web = service('a/web')
export const to = (name: string, extra: object = {}) => ({ services: [{ name, port: 80 }], ...extra })

export function secret(key: string, cert: string, privateKey: string): Obj {
  return object('Secret', key, {
    type: 'kubernetes.io/tls',
    data: {
      'tls.crt': Buffer.from(cert).toString('base64'),
      'tls.key': Buffer.from(privateKey).toString('base64'),
    },
  })
}

/** A build while the configuration of another one is served. */
export function runAfter({ ir }: Build, all: readonly Obj[]): Build {
  const served = certificatesBySecret(ir.certificates)
  return build({ ...objectsOf(all), served: (key) => served.get(key) }, BUILD_DEFAULTS)
}

export interface KeyPair {
  readonly certPem: string
  readonly keyPem: string
}

/** Two of them, for the same host. */
export async function issueKeyPairs(): Promise<[KeyPair, KeyPair]> {
  const authority = await createAuthority({ commonName: 'ca' })
  const issue = async () => authority.issue({ commonName: 'x.test', dnsNames: ['x.test'], usages: 'server' })
  return [await issue(), await issue()]
}
