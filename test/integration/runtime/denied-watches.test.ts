/** A kind that the manager may not watch: reported on its configuration object, and the other kinds are served. */
import { configFromText, connect, Event, Namespace } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { DNSEndpoint, memoryProvider, RecordsConfig, runApp, unified, wildcardDefaults } from '@seamark/operator'
import { expect, it, onTestFinished } from 'vitest'
import { createLoadBalancer, eventually, startEmbedded } from '../publish/test-environment.ts'

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: false }
const ClusterRole = kind<Obj & { rules: object[] }>({ ...RBAC, kind: 'ClusterRole', plural: 'clusterroles' })
const ClusterRoleBinding = kind<Obj & { roleRef: object; subjects: object[] }>({
  ...RBAC,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
})
const USER = 'seamark-manager'
const WATCHED = [
  'configmaps',
  'dnsendpoints',
  'dnsloadbalancers',
  'events',
  'httpproxies',
  'namespaces',
  'nodes',
  'secrets',
  'services',
]

/** Every right but list and watch of one resource. */
function rulesWithout(resource: string): object[] {
  const everything = { apiGroups: ['*'], resources: ['*'] }
  return [
    { ...everything, verbs: ['get', 'create', 'update', 'patch', 'delete'] },
    { apiGroups: ['*'], resources: WATCHED.filter((each) => each !== resource), verbs: ['list', 'watch'] },
  ]
}

/** A manager with publish, wildcard and records whose user may not list and watch the resource. */
async function startWithout(plural: string) {
  const environment = await startEmbedded()
  onTestFinished(async () => environment[Symbol.asyncDispose]())
  const { client } = environment
  for (const name of ['seamark', 'web', 'lb']) await client.create(Namespace, { metadata: { name } })
  await createLoadBalancer(client, 'lb/envoy', [{ ip: '192.0.2.1' }])
  await client.create(ClusterRole, { metadata: { name: USER }, rules: rulesWithout(plural) })
  await client.create(ClusterRoleBinding, {
    metadata: { name: USER },
    roleRef: { apiGroup: RBAC.group, kind: 'ClusterRole', name: USER },
    subjects: [{ apiGroup: RBAC.group, kind: 'User', name: USER }],
  })
  const memory = memoryProvider({ zones: ['example.test.'] })
  const stop = new AbortController()
  const running = runApp(
    {
      cluster: connect(configFromText(await environment.userKubeconfig(USER))),
      mode: 'enforce',
      namespace: 'seamark',
      publish: { ...unified, sources: ['HTTPProxy'], children: ['DNSEndpoint'], services: [{ service: 'lb/envoy' }] },
      wildcard: { ...wildcardDefaults, zone: 'example.test', localCluster: 'local' },
      records: {
        config: RecordsConfig.parse({ enabled: true, owner: 'test', dnsEndpoints: { enabled: true } }),
        env: {},
        providers: [memory],
      },
    },
    stop.signal,
  )
  onTestFinished(async () => {
    stop.abort()
    await running
  })
  return { client, memory }
}

it.each([
  ['publish', 'httpproxies', 'httpproxies.projectcontour.io'],
  ['wildcard', 'nodes', 'nodes'],
  ['records', 'dnsendpoints', 'dnsendpoints.externaldns.k8s.io'],
])('%s: a denied watch of %s is reported as WatchForbidden', async (_capability, plural, resource) => {
  const { client } = await startWithout(plural)
  const event = await eventually('the Event', async () =>
    (await client.list(Event, { namespace: 'seamark' })).items.find(({ reason }) => reason === 'WatchForbidden'),
  )
  expect(event).toMatchObject({ type: 'Warning', regarding: { kind: 'ConfigMap', name: 'seamark' } })
  expect(event.note).toContain(`Allow list and watch of ${resource} in the ClusterRole of the manager`)
})

it('the capabilities that do not need the kind run', async () => {
  const { client, memory } = await startWithout('httpproxies')
  const endpoints = [{ dnsName: 'shop.example.test', recordType: 'A' as const, recordTTL: 60, targets: ['192.0.2.9'] }]
  await client.create(DNSEndpoint, { metadata: { name: 'shop', namespace: 'web' }, spec: { endpoints } })
  const find = async () => memory.dump('example.test.').find(({ name }) => name === 'shop.example.test.')
  expect((await eventually('the record', find)).values).toEqual(['192.0.2.9'])
})
