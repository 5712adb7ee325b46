/** A tenant with one namespace that declares the host of another: its TLS, client certificates and paths stay the victim's. */
import { Event, Ingress, Secret, Service } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import { HTTPProxy } from '@seamark/kube/contour'
import { Gateway, GatewayClass, HTTPRoute } from '@seamark/kube/gateway-api'
import { afterEach, expect, it } from 'vitest'
import { type AttackedGateway, startAttackedGateway } from './gateway-victim.ts'

const waiting = { timeout: 60_000 }
/** Objects of the tenant, one after the other. */
const ROUNDS = 20
let gateway: AttackedGateway

afterEach(async () => {
  try {
    expect(gateway.isRunning()).toBe(true)
  } finally {
    await gateway.stop()
  }
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const backend = { service: { name: 'web', port: { number: 80 } } }

async function addService(): Promise<void> {
  const spec = { ports: [{ name: 'http', port: 80, protocol: 'TCP' as const }] }
  await gateway.client.create(Service, { metadata: { namespace: 'tenant', name: 'web' }, spec })
}

async function addIngress(name: string, host: string | undefined, path: string, spec: object = {}): Promise<void> {
  const rule = {
    ...(host !== undefined && { host }),
    http: { paths: [{ path, pathType: 'Prefix' as const, backend }] },
  }
  await gateway.client.create(Ingress, {
    metadata: { namespace: 'tenant', name },
    spec: { rules: [rule], ...spec },
  })
}

const reasons = async () => (await gateway.client.list(Event)).items.map(({ reason }) => reason)

it('an Ingress with TLS for the host neither replaces its certificate nor switches its client validation off', async () => {
  gateway = await startAttackedGateway()
  const authority = await createAuthority({ commonName: 'test' })
  const server = await authority.issue({ commonName: 'victim.test', dnsNames: ['victim.test'], usages: 'server' })
  const client = await authority.issue({ commonName: 'client', dnsNames: [], usages: 'client' })
  for (const namespace of ['victim', 'tenant'])
    await gateway.client.create(Secret, {
      metadata: { namespace, name: 'cert' },
      type: 'kubernetes.io/tls',
      data: {
        'tls.crt': base64(server.certPem),
        'tls.key': base64(server.keyPem),
        'ca.crt': base64(authority.certPem),
      },
    })
  await addService()
  // Older than what it attacks.
  await addIngress('first', 'victim.test', '/login', { tls: [{ hosts: ['victim.test'], secretName: 'cert' }] })
  const tls = { secretName: 'cert', clientValidation: { caSecret: 'cert' } }
  const spec = { virtualhost: { fqdn: 'victim.test', tls }, routes: [{ directResponsePolicy: { statusCode: 200 } }] }
  await gateway.client.create(HTTPProxy, { metadata: { namespace: 'victim', name: 'site' }, spec })
  const without = { host: 'victim.test', tls: { ca: authority.certPem } }
  const victim = { host: 'victim.test', tls: { ca: authority.certPem, cert: client.certPem, key: client.keyPem } }
  await gateway.attack('Ingresses with TLS for the host', victim, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await addIngress(`evil${round}`, 'victim.test', `/p${round}`, {
        tls: [{ hosts: ['victim.test'], secretName: 'cert' }],
      })
      expect(await gateway.status(without)).toBe(0)
    }
    await expect.poll(reasons, waiting).toContain('TLSConflict')
  })
  expect([await gateway.status(without), await gateway.status({ host: 'victim.test', path: '/login' })]).toEqual([
    0, 301,
  ])
})

it('a Gateway for the host and others opens no connection of another name to it', async () => {
  gateway = await startAttackedGateway()
  const authority = await createAuthority({ commonName: 'test' })
  const server = await authority.issue({ commonName: 'x.test', dnsNames: ['*.x.test'], usages: 'server' })
  const client = await authority.issue({ commonName: 'client', dnsNames: [], usages: 'client' })
  for (const namespace of ['victim', 'tenant'])
    await gateway.client.create(Secret, {
      metadata: { namespace, name: 'cert' },
      type: 'kubernetes.io/tls',
      data: {
        'tls.crt': base64(server.certPem),
        'tls.key': base64(server.keyPem),
        'ca.crt': base64(authority.certPem),
      },
    })
  const site = { secretName: 'cert', clientValidation: { caSecret: 'cert' } }
  const spec = {
    virtualhost: { fqdn: 'a.x.test', tls: site },
    routes: [{ directResponsePolicy: { statusCode: 200 } }],
  }
  await gateway.client.create(HTTPProxy, { metadata: { namespace: 'victim', name: 'site' }, spec })
  await addService()
  await gateway.client.create(GatewayClass, {
    metadata: { name: 'ours' },
    spec: { controllerName: 'seamark.io/gateway-controller' },
  })
  const tls = { ca: authority.certPem }
  const victim = { host: 'a.x.test', tls: { ...tls, cert: client.certPem, key: client.keyPem } }
  const own = { host: 'b.x.test', path: '/tenant', tls }
  const others = ['b.x.test', 'zzz.x.test'].flatMap((serverName) =>
    [false, true].map((isHttp2) => ({ host: 'a.x.test', tls, serverName, isHttp2 })),
  )
  await gateway.attack('connections of other names', victim, async () => {
    await gateway.client.create(Gateway, {
      metadata: { namespace: 'tenant', name: 'gateway' },
      spec: {
        gatewayClassName: 'ours',
        listeners: [
          {
            name: 'tls',
            port: 443,
            protocol: 'HTTPS',
            hostname: '*.x.test',
            tls: { certificateRefs: [{ name: 'cert' }] },
          },
        ],
      },
    })
    const rules = [{ matches: [{ path: { type: 'PathPrefix' as const, value: '/tenant' } }] }]
    await gateway.client.create(HTTPRoute, {
      metadata: { namespace: 'tenant', name: 'route' },
      spec: { parentRefs: [{ name: 'gateway' }], hostnames: ['a.x.test', 'b.x.test'], rules },
    })
    // Without a backend.
    await expect.poll(async () => gateway.status(own), waiting).toBe(500)
    for (const each of others) expect(await gateway.status(each)).toBe(421)
  })
  // Of the Gateway's own hosts one connection may ask for all.
  expect(await gateway.status({ ...own, serverName: 'zzz.x.test', isHttp2: true })).toBe(500)
  expect(await gateway.status({ host: 'a.x.test', tls })).toBe(0)
})

it('without a grant nothing of the host is taken', async () => {
  gateway = await startAttackedGateway(`apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
probes: { address: '0' }
metrics: { address: '0' }
gateway: { enabled: true, httpListen: '127.0.0.1:0', httpsListen: '127.0.0.1:0' }
grants:
  - { namespace: victim, domains: [victim.test] }
  - { namespace: tenant, domains: [tenant.test] }
`)
  await addService()
  const root = (fqdn: string) => ({ virtualhost: { fqdn }, routes: [{ directResponsePolicy: { statusCode: 200 } }] })
  await gateway.client.create(HTTPProxy, {
    metadata: { namespace: 'victim', name: 'site' },
    spec: root('victim.test'),
  })
  const login = { host: 'victim.test', path: '/login' }
  await gateway.attack('Ingresses, default backends and HTTPProxies for the host', login, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await addIngress(`path${round}`, 'victim.test', '/login')
      await addIngress(`wild${round}`, '*.victim.test', '/')
      await addIngress(`any${round}`, undefined, '/', { defaultBackend: backend })
      await gateway.client.create(HTTPProxy, {
        metadata: { namespace: 'tenant', name: `site${round}` },
        spec: root('victim.test'),
      })
    }
    await gateway.client.create(HTTPProxy, {
      metadata: { namespace: 'tenant', name: 'own' },
      spec: root('tenant.test'),
    })
    await expect.poll(async () => gateway.status({ host: 'tenant.test' }), waiting).toBe(200)
    await expect.poll(reasons, waiting).toContain('NameNotGranted')
  })
  expect(await gateway.status({ host: 'sub.victim.test' })).toBe(404)
  expect(await gateway.status({ host: 'anything.test' })).toBe(404)
  const errors = async () => {
    // Publish has conditions of its own on the same object.
    const conditions = (await gateway.statusOf('tenant/site0'))?.conditions ?? []
    return conditions.find(({ type }) => type === 'Valid')?.errors?.map(({ reason }) => reason)
  }
  await expect.poll(errors, waiting).toEqual(['NameNotGranted'])
})
