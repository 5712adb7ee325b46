/** Rendering and admission of each kind of root. */
import type { Ingress } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import type { HTTPRoute } from '@seamark/kube/gateway-api'
import type { Route } from '../../api/route.ts'
import { renderLeaf, type LeafRenderFacts } from '../decide/render.ts'
import { httpRouteRoot } from './http-route.ts'
import { ingressRoot } from './ingress.ts'
import { routeRoot } from './route.ts'

const facts: LeafRenderFacts = {
  cluster: 'eu1',
  hubId: 'hub',
  leafName: 'leaf',
  isHub: false,
  overrides: undefined,
  ownedHosts: new Set(['a.test', 'b.test']),
  managedHosts: new Map([['a.test', 'x1.apps.test']]),
  ingressClassMap: { global: 'nginx' },
  parentRefMap: [
    { from: { namespace: 'infra', name: 'global' }, to: { namespace: 'gw', name: 'real', sectionName: 'https' } },
  ],
  allowedAnnotations: ['ok', 'team/*'],
}

const backend = { service: { name: 'web', port: { number: 80 } } }
const path = { path: '/', pathType: 'Prefix' as const, backend }

const ingress: Ingress = {
  metadata: {
    name: 'shop',
    namespace: 'web',
    uid: 'u1',
    resourceVersion: '7',
    finalizers: ['seamark.io/global'],
    annotations: { ok: '1', 'team/x': '2', 'team/configuration-snippet': 'evil', other: '3' },
  },
  spec: {
    ingressClassName: 'global',
    defaultBackend: { service: { name: 'fallback' } },
    rules: [
      { host: 'A.test', http: { paths: [path] } },
      { host: 'stolen.test', http: { paths: [{ ...path, backend: { service: { name: 'api' } } }] } },
    ],
    tls: [
      { hosts: ['a.test', 'stolen.test'], secretName: 's' },
      { hosts: ['stolen.test'], secretName: 't' },
    ],
  },
}

const manifest = (rendered: ReturnType<typeof renderLeaf>) => {
  if (!('manifests' in rendered)) throw new Error(rendered.message)
  return rendered.manifests
}

describe('an Ingress as a root', () => {
  it('loses hosts it does not own, keeps allowed annotations, and gets its managed hosts', () => {
    const [leaf] = manifest(renderLeaf(ingress, ingressRoot, facts)) as [Ingress]
    expect(leaf.spec?.rules?.map(({ host }) => host)).toEqual(['a.test', 'x1.apps.test'])
    expect(leaf.spec?.tls).toEqual([{ hosts: ['a.test'], secretName: 's' }])
    expect(leaf.spec?.ingressClassName).toBe('nginx')
    expect(Object.keys(leaf.metadata.annotations ?? {})).toEqual([
      'ok',
      'team/x',
      'seamark.io/leaf',
      'seamark.io/spec-hash',
    ])
    expect(leaf.metadata).toMatchObject({ name: 'shop', namespace: 'web', labels: { 'seamark.io/root-uid': 'u1' } })
    expect(leaf.metadata).not.toHaveProperty('resourceVersion')
    expect(leaf.metadata).not.toHaveProperty('finalizers')
  })

  it('has no leaf when it owns none of its hosts', () => {
    expect(renderLeaf(ingress, ingressRoot, { ...facts, ownedHosts: new Set() })).toMatchObject({
      refused: 'HostsNotOwned',
    })
  })

  it('has another name on the hub itself, and a hash that follows the content only', () => {
    const [leaf] = manifest(renderLeaf(ingress, ingressRoot, { ...facts, isHub: true }))
    expect(leaf?.metadata.name).toBe('shop--eu1')
    const again = renderLeaf(
      { ...ingress, metadata: { ...ingress.metadata, resourceVersion: '9' } },
      ingressRoot,
      facts,
    )
    expect(again).toEqual(renderLeaf(ingress, ingressRoot, facts))
  })

  it('is patched last, without losing its identity; a patch that fails is refused', () => {
    const patches = [
      { op: 'add' as const, path: '/metadata/labels', value: { 'seamark.io/hub': 'evil', team: 'a' } },
      { op: 'replace' as const, path: '/metadata/name', value: 'other' },
    ]
    const [leaf] = manifest(renderLeaf(ingress, ingressRoot, { ...facts, overrides: [{ cluster: 'eu1', patches }] }))
    expect(leaf?.metadata).toMatchObject({ name: 'shop', labels: { 'seamark.io/hub': 'hub' } })
    const bad = [{ cluster: 'eu1', patches: [{ op: 'remove' as const, path: '/spec/none' }] }]
    expect(renderLeaf(ingress, ingressRoot, { ...facts, overrides: bad })).toMatchObject({ refused: 'OverrideInvalid' })
  })

  it('gets from overrides no host, annotation, class or catch-all that the root could not have, and says so', () => {
    const { defaultBackend: _none, ...spec } = ingress.spec ?? {}
    const patches = [
      { op: 'add' as const, path: '/spec/rules/-', value: { host: 'Stolen.test', http: { paths: [path] } } },
      { op: 'add' as const, path: '/spec/rules/-', value: { http: { paths: [path] } } },
      { op: 'add' as const, path: '/spec/rules/-', value: { host: 'B.test.', http: { paths: [path] } } },
      { op: 'add' as const, path: '/spec/defaultBackend', value: backend },
      { op: 'replace' as const, path: '/spec/ingressClassName', value: 'internal' },
      { op: 'add' as const, path: '/spec/tls/-', value: { hosts: ['stolen.test', 'B.test.'], secretName: 'x' } },
      {
        op: 'add' as const,
        path: '/metadata/annotations',
        value: { ok: '2', 'nginx.ingress.kubernetes.io/configuration-snippet': 'evil', 'team/server-alias': 'x' },
      },
      { op: 'add' as const, path: '/metadata/labels', value: { 'seamark.io/global': 'true', team: 'a' } },
      { op: 'add' as const, path: '/status', value: {} },
    ]
    const rendered = renderLeaf({ ...ingress, spec }, ingressRoot, {
      ...facts,
      overrides: [{ cluster: 'eu1', patches }],
    })
    const [leaf] = manifest(rendered) as [Ingress]
    expect(leaf.spec).toEqual({
      ingressClassName: 'nginx',
      rules: [
        { host: 'a.test', http: { paths: [path] } },
        { host: 'x1.apps.test', http: { paths: [path] } },
        { host: 'b.test', http: { paths: [path] } },
      ],
      tls: [
        { hosts: ['a.test'], secretName: 's' },
        { hosts: ['b.test'], secretName: 'x' },
      ],
    })
    expect(Object.keys(leaf.metadata.annotations ?? {})).toEqual(['ok', 'seamark.io/leaf', 'seamark.io/spec-hash'])
    expect(Object.keys(leaf.metadata.labels ?? {})).toEqual([
      'seamark.io/managed',
      'seamark.io/hub',
      'seamark.io/root-uid',
    ])
    expect(leaf).not.toHaveProperty('status')
    expect(rendered).toMatchObject({
      dropped:
        'a rule without a host, annotation nginx.ingress.kubernetes.io/configuration-snippet, annotation team/server-alias, defaultBackend, host Stolen.test, hosts of tls, ingressClassName, label seamark.io/global, label team',
    })
    expect(renderLeaf(ingress, ingressRoot, facts)).toMatchObject({ dropped: '' })
  })

  it('is not applied when overrides leave no host of it, or no object', () => {
    const of = (...patches: { op: 'replace' | 'remove'; path: string; value?: unknown }[]) =>
      renderLeaf(ingress, ingressRoot, { ...facts, overrides: [{ cluster: 'eu1', patches }] })
    expect(of({ op: 'replace', path: '/spec/rules', value: [{ http: { paths: [path] } }] })).toMatchObject({
      refused: 'OverrideInvalid',
      message: expect.stringContaining('no rule with a host'),
    })
    for (const value of [null, 'text', [], { spec: {} }, { metadata: [], spec: {} }])
      expect(of({ op: 'replace', path: '', value })).toMatchObject({ refused: 'OverrideInvalid' })
    expect(of({ op: 'replace', path: '/spec/rules', value: 7 })).toMatchObject({ refused: 'OverrideInvalid' })
    expect(of({ op: 'replace', path: '/metadata', value: { annotations: 'x', labels: 7 } })).toHaveProperty('manifests')
  })

  it('names its hosts and Services once each, also the default backend', () => {
    expect(ingressRoot.hostsOf(ingress)).toEqual(['a.test', 'stolen.test'])
    expect(ingressRoot.backendsOf(ingress)).toEqual(['api', 'fallback', 'web'])
    expect(ingressRoot.backendsOf({ metadata: {}, spec: { rules: [{ host: 'x' }] } })).toEqual([])
  })

  it('is admitted with an address, sorted, whatever the order of the member', () => {
    const none = { routerName: undefined, gatewayAddresses: () => undefined }
    const of = (...ips: string[]) =>
      ingressRoot.readAdmission(
        { metadata: {}, status: { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } } },
        none,
      )
    expect(of('192.0.2.2', '192.0.2.1')).toEqual(of('192.0.2.1', '192.0.2.2', '192.0.2.1'))
    expect(of('not an address')).toMatchObject({ isAdmitted: false })
    expect(of()).toMatchObject({ isAdmitted: false })
  })
})

describe('an HTTPRoute as a root', () => {
  const route: HTTPRoute = {
    metadata: { name: 'api', namespace: 'web', uid: 'u2', generation: 2 },
    spec: {
      parentRefs: [{ name: 'global', namespace: 'infra' }, { name: 'other' }],
      hostnames: ['b.test', 'stolen.test'],
    },
  }

  it('is attached to the mapped Gateway with the hosts it owns', () => {
    const [leaf] = manifest(renderLeaf(route, httpRouteRoot, facts)) as [HTTPRoute]
    expect(leaf.spec).toMatchObject({
      parentRefs: [{ namespace: 'gw', name: 'real', sectionName: 'https' }],
      hostnames: ['b.test'],
    })
  })

  it('keeps its parents and owned hosts whatever overrides say', () => {
    const patches = [
      { op: 'replace' as const, path: '/spec/parentRefs', value: [{ name: 'private', namespace: 'infra' }] },
      { op: 'add' as const, path: '/spec/hostnames/-', value: 'stolen.test' },
      { op: 'add' as const, path: '/spec/hostnames/-', value: 'A.test.' },
      { op: 'add' as const, path: '/spec/hostnames/-', value: 'B.test' },
    ]
    const rendered = renderLeaf(route, httpRouteRoot, { ...facts, overrides: [{ cluster: 'eu1', patches }] })
    const [leaf] = manifest(rendered) as [HTTPRoute]
    expect(leaf.spec).toMatchObject({
      parentRefs: [{ namespace: 'gw', name: 'real', sectionName: 'https' }],
      hostnames: ['b.test', 'a.test'],
    })
    expect(rendered).toMatchObject({ dropped: 'host stolen.test, parentRefs' })
    const scope = { op: 'add' as const, path: '/spec/useDefaultGateways', value: 'All' }
    const given = { ...route, spec: { ...route.spec, useDefaultGateways: 'All' } }
    for (const [root, patch] of [
      [given, []],
      [route, [scope]],
    ] as const) {
      const overrides = [{ cluster: 'eu1', patches: [...patch] }]
      const [each] = manifest(renderLeaf(root, httpRouteRoot, { ...facts, overrides })) as [HTTPRoute]
      expect(each.spec).not.toHaveProperty('useDefaultGateways')
    }
    const emptied = [{ op: 'replace' as const, path: '/spec/hostnames', value: [] }]
    expect(
      renderLeaf(route, httpRouteRoot, { ...facts, overrides: [{ cluster: 'eu1', patches: emptied }] }),
    ).toMatchObject({ refused: 'OverrideInvalid' })
  })

  it('has no leaf without a mapping or without hosts: an empty list would mean every host', () => {
    expect(renderLeaf(route, httpRouteRoot, { ...facts, parentRefMap: [] })).toMatchObject({
      refused: 'NoMatchingParent',
    })
    expect(renderLeaf(route, httpRouteRoot, { ...facts, ownedHosts: new Set() })).toMatchObject({
      refused: 'HostsNotOwned',
    })
    const bare = { ...route, spec: { ...route.spec, hostnames: [] } }
    expect(renderLeaf(bare, httpRouteRoot, facts)).toMatchObject({ refused: 'HostsNotOwned' })
  })

  it('is admitted by the current generation only, with the addresses of its Gateways', () => {
    const admission = (observedGeneration: number, addresses: string[] | undefined) =>
      httpRouteRoot.readAdmission(
        {
          metadata: { namespace: 'web', generation: 2 },
          spec: { parentRefs: [{ name: 'gw' }] },
          status: {
            parents: [
              {
                parentRef: { name: 'gw' },
                conditions: ['Accepted', 'ResolvedRefs'].map((type) => ({ type, status: 'True', observedGeneration })),
              },
            ],
          },
        },
        { routerName: undefined, gatewayAddresses: () => addresses?.map((value) => ({ type: 'IPAddress', value })) },
      )
    expect(admission(2, ['192.0.2.1'])).toMatchObject({ isAdmitted: true, addresses: [{ value: '192.0.2.1' }] })
    expect(admission(1, ['192.0.2.1']).isAdmitted).toBe(false)
    expect(admission(2, undefined)).toMatchObject({ isAdmitted: false, message: 'Gateway gw has no address' })
  })
})

describe('a Route as a root', () => {
  const route = {
    metadata: { name: 'r', namespace: 'web', uid: 'u3', labels: { 'seamark.io/global': 'true' } },
    spec: { host: 'a.test', to: { kind: 'Service', name: 'web' }, alternateBackends: [{ name: 'canary' }] },
  } as Route

  it('has a second Route for the managed host, and keeps its backends', () => {
    const leaves = manifest(renderLeaf(route, routeRoot, facts)) as Route[]
    expect(leaves.map(({ metadata, spec }) => `${metadata.name} ${spec?.host}`)).toEqual([
      'r a.test',
      'r-seamark x1.apps.test',
    ])
    expect(leaves[0]?.metadata.labels).not.toHaveProperty('seamark.io/global')
    expect(routeRoot.backendsOf(route)).toEqual(['canary', 'web'])
  })

  it('serves one host, with and without overrides: neither a whole subdomain nor a generated host', () => {
    const wide = { ...route, spec: { ...route.spec, wildcardPolicy: 'Subdomain', subdomain: 'x' } } as Route
    for (const leaf of manifest(renderLeaf(wide, routeRoot, facts)) as Route[])
      expect(Object.keys(leaf.spec ?? {}).sort()).toEqual(['alternateBackends', 'host', 'to'])
    const patches = [
      { op: 'replace' as const, path: '/spec/host', value: 'stolen.test' },
      { op: 'add' as const, path: '/spec/wildcardPolicy', value: 'Subdomain' },
      { op: 'add' as const, path: '/spec/path', value: '/x' },
    ]
    const rendered = renderLeaf(route, routeRoot, { ...facts, overrides: [{ cluster: 'eu1', patches }] })
    expect((manifest(rendered) as Route[]).map(({ spec }) => spec)).toEqual([
      { ...route.spec, host: 'a.test', path: '/x' },
      { ...route.spec, host: 'x1.apps.test', path: '/x' },
    ])
    expect(rendered).toMatchObject({ dropped: 'host stolen.test, wildcardPolicy' })
  })

  it('is chosen by no other router: overrides set no label', () => {
    const patches = [
      { op: 'add' as const, path: '/metadata/labels', value: { type: 'internal-shard' } },
      { op: 'replace' as const, path: '/spec/host', value: 'A.TEST.' },
    ]
    const rendered = renderLeaf(route, routeRoot, { ...facts, overrides: [{ cluster: 'eu1', patches }] })
    for (const { metadata } of manifest(rendered)) expect(metadata.labels).not.toHaveProperty('type')
    expect(manifest(rendered)[0]).toMatchObject({ spec: { host: 'a.test' } })
    expect(rendered).toMatchObject({ dropped: 'label type' })
  })

  it('never publishes its own host as its address', () => {
    const status = (routerCanonicalHostname?: string) => ({
      ingress: [
        {
          host: 'a.test',
          routerName: 'default',
          ...(routerCanonicalHostname !== undefined && { routerCanonicalHostname }),
          conditions: [{ type: 'Admitted', status: 'True' }],
        },
      ],
    })
    const read = (given: Route['status'], routerName?: string) =>
      routeRoot.readAdmission({ ...route, status: given as never }, { routerName, gatewayAddresses: () => undefined })
    expect(read(status('router.eu1.test'))).toMatchObject({
      isAdmitted: true,
      addresses: [{ value: 'router.eu1.test' }],
    })
    expect(read(status())).toMatchObject({ isAdmitted: false })
    expect(read(status('router.eu1.test'), 'other')).toMatchObject({ isAdmitted: false })
  })
})
