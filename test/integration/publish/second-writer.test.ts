/** Two managers in different namespaces, or another client, that write the same objects: the number of writes is bounded. */
import { Writable } from 'node:stream'
import { configFromText, connect, createLogger, Event, Lease } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { DNSEndpoint, FIELD_MANAGER, HTTPProxy, runApp, unified } from '@seamark/operator'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Bench, endpointsOf } from './bench.ts'
import {
  createLoadBalancer,
  createNamespace,
  type RunningApp,
  type TestEnvironment,
  environmentKinds,
} from './test-environment.ts'

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: false }
const ClusterRole = kind<Obj & { rules: object[] }>({ ...rbac, kind: 'ClusterRole', plural: 'clusterroles' })
const ClusterRoleBinding = kind<Obj & { roleRef: object; subjects: object[] }>({
  ...rbac,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
})
const OTHER = 'test-ns/other-svc'
/** Writes of one content per object, and the first of the other manager's. */
const WRITES_PER_OBJECT = 5

describe.each(environmentKinds)('a second writer on $name', ({ isMissing, start }) => {
  let environment: TestEnvironment
  let bench: Bench

  beforeAll(async () => {
    if (isMissing) return
    environment = await start()
    bench = await Bench.prepare(environment)
    await createNamespace(environment.client, 'infra')
    await createLoadBalancer(environment.client, OTHER, [{ ip: '203.0.113.66' }])
  })
  afterEach(async () => {
    if (!isMissing) await bench.wipe()
  })
  afterAll(async () => environment?.[Symbol.asyncDispose]())

  const plain = (name: string) => ({
    metadata: { name },
    annotations: { 'kubernetes.io/tls-acme': 'false' },
    spec: { virtualhost: { fqdn: `${name}.example.com` } },
  })

  async function conditionOf(key: string): Promise<{ reason?: string; message?: string } | undefined> {
    const { status } = await bench.client.get(HTTPProxy, key)
    return status?.conditions?.find(({ type }) => type === 'seamark.io/Published')
  }

  async function stoppedMessage(key: string): Promise<string> {
    const condition = await bench.eventually(
      'the code',
      async () => conditionOf(key),
      ({ reason }) => reason === 'SecondWriter',
    )
    return condition.message ?? ''
  }

  it.skipIf(isMissing)(
    '`seamark run` and `seamark contour-plus` in two namespaces stop, with a code and the holder of the other Lease',
    async () => {
      const lease = 'contour-plus-leader'
      await bench.proxy(plain('two'))
      const contourPlus = bench.run(
        { services: [{ service: OTHER }] },
        {
          namespace: 'infra',
          hasPause: false,
          reportsInitialFindings: false,
          leader: { lease, namespace: 'infra', identity: 'contour-plus-1' },
        },
      )
      await bench.dns('ns/two')
      const seamark = bench.runUnified({}, { leader: { lease, namespace: 'manager', identity: 'seamark-1' } })
      try {
        // Whichever of the two writes its fifth time first stops; the object keeps the content of the other.
        const note = await bench.eventually('the Events', async () => {
          const { items } = await bench.client.list(Event)
          const about = (reason: string) => items.filter((event) => event.reason === reason)
          const stops = about('SecondWriter')
          const kinds = stops.map(({ regarding }) => `${regarding?.kind} ${regarding?.name}`)
          const warned = about('OtherManagerRunning').map((event) => event.note ?? '')
          const isComplete =
            kinds.includes('HTTPProxy two') &&
            kinds.includes('ConfigMap seamark') &&
            warned.some((text) => text.includes('Lease infra/contour-plus-leader is held by contour-plus-1'))
          return isComplete ? stops[0]?.note : undefined
        })
        expect(note).toContain('DNSEndpoint ns/two: 5 writes within 10 min were undone')
        expect(note).toContain('another process with our field manager contour-plus')
        expect(note).toMatch(
          /Lease (infra|manager)\/contour-plus-leader is held by (contour-plus|seamark)-1 \(contour-plus or another Seamark manager\)/,
        )
        await expectQuiet([seamark, contourPlus])
        const { metadata } = await bench.client.get(DNSEndpoint, 'ns/two')
        expect(metadata.generation).toBeLessThanOrEqual(2 * WRITES_PER_OBJECT)
      } finally {
        await contourPlus.stop()
        await seamark.stop()
      }
      expect(await bench.client.find(Lease, `infra/${lease}`)).toBeDefined()
    },
  )

  it.skipIf(isMissing)('a client that undoes every write is answered a few times only', async () => {
    await bench.proxy(plain('undone'))
    await using _app = bench.runUnified()
    const first = await bench.dns('ns/undone')
    const stop = new AbortController()
    let undone = 0
    const undoOne = async ({ spec }: DNSEndpoint): Promise<void> => {
      if (spec.endpoints[0]?.targets[0] === '192.0.2.66') return
      undone++
      const endpoints = [{ ...spec.endpoints[0], targets: ['192.0.2.66'] }]
      await bench.client.patch(DNSEndpoint, 'ns/undone', 'merge', { spec: { endpoints } }, { fieldManager: 'intruder' })
    }
    const undo = async (): Promise<void> => {
      const resourceVersion = first.metadata.resourceVersion ?? ''
      await undoOne(first)
      const fieldSelector = 'metadata.name=undone'
      const events = bench.client.watch(DNSEndpoint, {
        namespace: 'ns',
        fieldSelector,
        resourceVersion,
        signal: stop.signal,
      })
      for await (const { type, object } of events) if (type === 'MODIFIED') await undoOne(object)
    }
    const undoing = undo().catch((error: unknown) => {
      if (!stop.signal.aborted) throw error
    })
    expect(await stoppedMessage('ns/undone')).toContain('were undone by field manager intruder')
    stop.abort()
    await undoing
    expect(undone).toBe(WRITES_PER_OBJECT)
    expect(endpointsOf(await bench.dns('ns/undone'))).toEqual([expect.stringContaining('192.0.2.66')])
  })

  it.skipIf(isMissing)('without permission to list Leases that is said once, and everything is published', async () => {
    const groups = [
      '',
      'externaldns.k8s.io',
      'projectcontour.io',
      'cert-manager.io',
      'apiextensions.k8s.io',
      'events.k8s.io',
    ]
    await bench.client.create(ClusterRole, {
      metadata: { name: 'without-leases' },
      rules: [{ apiGroups: groups, resources: ['*'], verbs: ['*'] }],
    })
    await bench.client.create(ClusterRoleBinding, {
      metadata: { name: 'without-leases' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'without-leases' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'without-leases' }],
    })
    await bench.proxy(plain('narrow'))
    let log = ''
    const destination = new Writable({
      write(chunk, _encoding, done) {
        log += String(chunk)
        done()
      },
    })
    const cluster = connect(configFromText(await environment.userKubeconfig('without-leases')), {
      fieldManager: FIELD_MANAGER,
    })
    const stop = new AbortController()
    const running = runApp(
      {
        cluster,
        publish: bench.options({}, { ...unified, sources: ['HTTPProxy'] }),
        namespace: 'manager',
        mode: 'enforce',
        log: createLogger({ level: 'warn', destination }),
      },
      stop.signal,
    )
    await bench.dns('ns/narrow')
    stop.abort()
    await running
    await cluster.close()
    const lines = log.split('\n').filter((line) => line.includes('Leases of other managers cannot be listed'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('forbidden')
  })

  /** No request that writes, while each program had time for hundreds. */
  async function expectQuiet(apps: readonly RunningApp[]): Promise<void> {
    const generation = async () => (await bench.client.get(DNSEndpoint, 'ns/two')).metadata.generation
    const before = await generation()
    for (let look = 0; look < 20; look++) expect(await generation()).toBe(before)
    expect(apps.every(({ writes }) => writes.count < 100)).toBe(true)
  }
})
