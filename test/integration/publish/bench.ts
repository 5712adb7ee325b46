/**
 * What a publish scenario needs: a server, its own namespaces, fixture F, an app with the scenario's options, and reads that
 * wait. Everything a scenario made is wiped after it.
 */
import { type Client, Ingress, Namespace, NotFound, Service } from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import {
  Certificate,
  DNSEndpoint,
  dropIn,
  Gateway,
  HTTPProxy,
  HTTPRoute,
  IngressRoute,
  type PublishOptions,
  ReferenceGrant,
  Route,
  runApp,
  TLSCertificateDelegation,
  unified,
} from '@seamark/operator'
import { expect } from 'vitest'
import {
  createLoadBalancer,
  createNamespace,
  eventually,
  type RunningApp,
  setAddresses,
  type TestEnvironment,
} from './test-environment.ts'

export const SERVICE = 'test-ns/test-svc'
const NAMESPACES = ['ns', 'test-ns', 'dns', 'certs', 'manager', 'ns2']
const WIPED = [
  HTTPProxy,
  IngressRoute,
  Ingress,
  HTTPRoute,
  Gateway,
  ReferenceGrant,
  Route,
  DNSEndpoint,
  Certificate,
  TLSCertificateDelegation,
]

export type ProxyChanges = {
  metadata?: Partial<HTTPProxy['metadata']>
  spec?: HTTPProxy['spec']
  annotations?: Record<string, string>
}

export class Bench {
  readonly environment: TestEnvironment
  readonly client: Client

  constructor(environment: TestEnvironment) {
    this.environment = environment
    this.client = environment.client
  }

  static async prepare(environment: TestEnvironment): Promise<Bench> {
    for (const name of NAMESPACES) await createNamespace(environment.client, name)
    await createLoadBalancer(environment.client, SERVICE, [{ ip: '10.0.0.0' }])
    return new Bench(environment)
  }

  options(changes: Partial<PublishOptions> = {}, base: PublishOptions = dropIn): PublishOptions {
    const issuer = { defaultIssuerName: 'test-issuer', defaultIssuerKind: 'Issuer' } as const
    return { ...base, services: [{ service: SERVICE }], ...issuer, ...changes }
  }

  /** An app with these options, running until disposed. */
  run(changes: Partial<PublishOptions> = {}, more: Partial<Parameters<typeof runApp>[0]> = {}): RunningApp {
    const publish = this.options(changes)
    return this.environment.launch('contour-plus', async (cluster, { clock }, signal) =>
      runApp({ cluster, clock, publish, namespace: 'manager', mode: 'enforce', ...more }, signal),
    )
  }

  /** As `seamark run` starts from. */
  runUnified(changes: Partial<PublishOptions> = {}, more: Partial<Parameters<typeof runApp>[0]> = {}): RunningApp {
    return this.run(this.options(changes, unified), more)
  }

  async setStatus<T extends Obj>(kind: Kind<T>, key: string, status: object): Promise<void> {
    await this.client.patch(kind, key, 'merge', { status }, { subresource: 'status' })
  }

  async labelNamespace(name: string, labels: Record<string, string | null>): Promise<void> {
    await this.client.patch(Namespace, name, 'merge', { metadata: { labels } })
  }

  /** Creation times are whole seconds: what is made after this is younger than what was made before. */
  async nextSecond(): Promise<void> {
    await this.environment.waiting.pass(1_000)
  }

  async eventually<T>(what: string, read: () => Promise<T | undefined>, isRight?: (value: T) => boolean): Promise<T> {
    return eventually(what, read, isRight, undefined, this.environment.waiting)
  }

  /** Waits until there are so many children. */
  async untilChildren(count: number): Promise<void> {
    await this.eventually(
      `${count} children`,
      async () => (await this.children()).length,
      (found) => found === count,
    )
  }

  /** Requests that write, since the app started; a fault makes some of them twice, and then they are not counted. */
  expectWrites(app: RunningApp, count: number): void {
    if (this.environment.isCounting) expect(app.writes.count).toBe(count)
  }

  /** Fixture F, changed. */
  async proxy({ metadata = {}, spec, annotations = {} }: ProxyChanges = {}): Promise<HTTPProxy> {
    return this.client.create(HTTPProxy, {
      metadata: {
        namespace: 'ns',
        name: 'foo',
        annotations: { 'kubernetes.io/tls-acme': 'true', ...annotations },
        ...metadata,
      },
      spec: {
        routes: [],
        ...(spec ?? { virtualhost: { fqdn: 'test.example.com', tls: { secretName: 'test-secret' } } }),
      } as NonNullable<HTTPProxy['spec']>,
    })
  }

  async annotate(key: string, annotations: Record<string, string | null>): Promise<void> {
    await this.client.patch(HTTPProxy, key, 'merge', { metadata: { annotations } })
  }

  async dns(key: string, isRight: (object: DNSEndpoint) => boolean = () => true): Promise<DNSEndpoint> {
    return this.eventually(`DNSEndpoint ${key}`, async () => this.client.find(DNSEndpoint, key), isRight)
  }

  async certificate(key: string, isRight: (object: Certificate) => boolean = () => true): Promise<Certificate> {
    return this.eventually(`Certificate ${key}`, async () => this.client.find(Certificate, key), isRight)
  }

  async delegation(key: string): Promise<TLSCertificateDelegation> {
    return this.eventually(`TLSCertificateDelegation ${key}`, async () =>
      this.client.find(TLSCertificateDelegation, key),
    )
  }

  /** Of every child kind, `Kind namespace/name`, sorted. */
  async children(): Promise<string[]> {
    const found: string[] = []
    for (const kind of [DNSEndpoint, Certificate, TLSCertificateDelegation]) {
      const { items } = await this.client.list<Obj>(kind)
      found.push(...items.map(({ metadata }) => `${kind.kind} ${metadata.namespace}/${metadata.name}`))
    }
    return found.toSorted()
  }

  /** A proxy made now is decided after everything before it: when its record is there, what is not there will not come. */
  async settled(ingressClass = 'class-name'): Promise<void> {
    const { settle } = this.environment.waiting
    if (settle !== undefined) return settle()
    const name = `probe-${Math.random().toString(36).slice(2)}`
    await this.client.create(HTTPProxy, {
      metadata: { namespace: 'ns', name, annotations: { 'kubernetes.io/ingress.class': ingressClass } },
      spec: { routes: [], virtualhost: { fqdn: `${name}.example.com` } } as NonNullable<HTTPProxy['spec']>,
    })
    await this.eventually(`a child of ${name}`, async () =>
      (await this.children()).find((child) => child.includes(name)),
    )
    await this.client.delete(HTTPProxy, `ns/${name}`)
    for (const kind of [DNSEndpoint, Certificate]) {
      const { items } = await this.client.list<Obj>(kind)
      for (const { metadata } of items)
        if (metadata.name?.includes(name) === true)
          await this.client.delete<Obj>(kind, `${metadata.namespace}/${metadata.name}`).catch(ignoreGone)
    }
  }

  /** What `settled` costs an app in requests that write. */
  get settlingWrites(): number {
    return this.environment.waiting.settle === undefined ? 1 : 0
  }

  /** Object versions of all children: equal before and after means nothing was written. */
  async versions(): Promise<string[]> {
    const found: string[] = []
    for (const kind of [HTTPProxy, DNSEndpoint, Certificate, TLSCertificateDelegation]) {
      const { items } = await this.client.list<Obj>(kind)
      found.push(
        ...items.map(
          ({ metadata }) =>
            `${kind.kind} ${metadata.namespace}/${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`,
        ),
      )
    }
    return found.toSorted()
  }

  /** The load balancer as fixture F has it, whatever a scenario did to it. */
  async restoreService(): Promise<void> {
    const found = await this.client.find(Service, SERVICE)
    if (found === undefined) await createLoadBalancer(this.client, SERVICE, [{ ip: '10.0.0.0' }])
    else await setAddresses(this.client, SERVICE, [{ ip: '10.0.0.0' }])
  }

  async wipe(): Promise<void> {
    for (const kind of WIPED) {
      const { items } = await this.client.list<Obj>(kind)
      for (const { metadata } of items) {
        const key = `${metadata.namespace}/${metadata.name}`
        if ((metadata.finalizers ?? []).length > 0)
          await this.client.patch<Obj>(kind, key, 'merge', { metadata: { finalizers: null } })
        await this.client.delete<Obj>(kind, key).catch(ignoreGone)
      }
    }
    await this.untilChildren(0)
  }
}

export function endpointsOf(object: DNSEndpoint): string[] {
  return object.spec.endpoints.map(
    ({ dnsName, recordType, recordTTL, targets }) => `${dnsName} ${recordTTL} ${recordType} ${targets.join(',')}`,
  )
}

/** The embedded server collects garbage as a whole cluster does, and may have been faster. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
