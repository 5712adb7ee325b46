/** Builders for tests: objects as a user would write them, and decisions on them without a server. */
import type { Obj } from '@seamark/kube/object'
import type { HTTPProxy, VirtualHost } from '@seamark/kube/contour'
import type { Target } from '../src/publish/sources/source.ts'
import { sortAddresses } from '@seamark/dialects'
import { TLS_ACME } from '../src/publish/annotation-keys.ts'
import type { ChildRole } from '../src/publish/decide/child.ts'
import { decide, type Decision } from '../src/publish/decide/decide.ts'
import { dropIn, type PublishOptions } from '../src/publish/options.ts'
import { fromHTTPProxy } from '../src/publish/sources/http-proxy.ts'

export type Modifier = (proxy: HTTPProxy) => void

/** Fixture F of the acceptance suite: `ns/foo`, tls-acme, test.example.com, Secret test-secret. */
export function httpProxy(...modifiers: Modifier[]): HTTPProxy {
  const proxy: HTTPProxy = {
    metadata: {
      namespace: 'ns',
      name: 'foo',
      uid: 'uid-foo',
      creationTimestamp: '2026-01-01T00:00:00Z',
      annotations: { [TLS_ACME]: 'true' },
    },
    spec: { virtualhost: { fqdn: 'test.example.com', tls: { secretName: 'test-secret' } } },
  }
  for (const modify of modifiers) modify(proxy)
  return proxy
}

export function annotated(annotations: Record<string, string>): Modifier {
  return ({ metadata }) => {
    metadata.annotations = { ...metadata.annotations, ...annotations }
  }
}

export function withVirtualHost(virtualhost: VirtualHost | null): Modifier {
  return (proxy) => {
    proxy.spec = { ...proxy.spec, virtualhost }
  }
}

export function withHost(fqdn: string): Modifier {
  return withVirtualHost({ fqdn, tls: { secretName: 'test-secret' } })
}

export function withClass(ingressClassName: string): Modifier {
  return (proxy) => {
    proxy.spec = { ...proxy.spec, ingressClassName }
  }
}

export function named(namespace: string, name: string): Modifier {
  return ({ metadata }) => Object.assign(metadata, { namespace, name, uid: `uid-${namespace}-${name}` })
}

/** Options of the acceptance suite: default issuer `test-issuer` of kind Issuer, Service test-ns/test-svc. */
export function options(changes: Partial<PublishOptions> = {}): PublishOptions {
  const base = { ...dropIn, services: [{ service: 'test-ns/test-svc' }] }
  return { ...base, defaultIssuerName: 'test-issuer', defaultIssuerKind: 'Issuer', ...changes }
}

export function behind(...entries: { ip?: string; hostname?: string }[]): Target {
  return { state: 'known', addresses: sortAddresses(entries), from: 'service test-ns/test-svc' }
}

export function decideProxy(
  proxy: HTTPProxy,
  changes: Partial<PublishOptions> = {},
  target: Target = behind({ ip: '10.0.0.0' }),
): Decision {
  return decide(
    { source: fromHTTPProxy(proxy), target, claims: new Map(), publications: new Map(), published: [] },
    options(changes),
  )
}

/** The desired object of a role, or the state and reasons of the child when there is none. */
export function outcome(decision: Decision, role: ChildRole): Obj | string {
  const child = decision.children[role]
  if (child.state === 'wanted') {
    const [desired] = child.desired
    if (desired === undefined) throw new Error(`child wanted without an object for ${role}`)
    return desired.object
  }
  return [child.state, ...child.findings.map((finding) => finding.reason)].join(' ')
}
