/** The examples, applied as a reader would, the Deployment's manager under exactly the rights its manifest gives. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { configFromText, connect, Secret, Service } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import {
  Certificate,
  DNSEndpoint,
  HTTPProxy,
  loadConfig,
  publishOptions,
  runApp,
  wildcardOptions,
} from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { crdsInUse, eventually, setAddresses, type TestEnvironment, environmentKinds } from './test-environment.ts'

const examples = join(import.meta.dirname, '../../../examples')

function documents(file: string): (Obj & Record<string, unknown>)[] {
  return parseAllDocuments(readFileSync(join(examples, file), 'utf8')).map(
    (document) => document.toJS() as Obj & Record<string, unknown>,
  )
}

/** Plural by kind: all that the examples hold. */
const PLURALS: Record<string, string> = {
  Namespace: 'namespaces',
  Service: 'services',
  ServiceAccount: 'serviceaccounts',
  ConfigMap: 'configmaps',
  Secret: 'secrets',
  HTTPProxy: 'httpproxies',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  Role: 'roles',
  RoleBinding: 'rolebindings',
  Deployment: 'deployments',
  NetworkPolicy: 'networkpolicies',
  PodDisruptionBudget: 'poddisruptionbudgets',
}

async function apply(environment: TestEnvironment, file: string): Promise<void> {
  for (const document of documents(file)) {
    const [group = '', version] = (document.apiVersion ?? '').includes('/')
      ? (document.apiVersion ?? '').split('/')
      : ['', document.apiVersion]
    const namespaced = document.metadata.namespace !== undefined
    const kind = {
      group,
      version: version ?? '',
      kind: document.kind ?? '',
      plural: PLURALS[document.kind ?? ''] ?? '',
      namespaced,
    }
    await environment.client.apply(kind, document)
  }
}

const [embedded, real] = environmentKinds

describe('examples', () => {
  it('wildcard and contour manifests are accepted by the API server', async () => {
    if (embedded === undefined) throw new Error('no embedded environment')
    await using environment = await embedded.start()
    await apply(environment, 'contour/load-balancer.yaml')
    await apply(environment, 'contour/shop.yaml')
    await apply(environment, 'deploy/seamark.yaml')
    await apply(environment, 'wildcard/cluster.yaml')
    await apply(environment, 'wildcard/reader.yaml')
    expect(new Set((await environment.client.list(HTTPProxy)).items.map((item) => item.metadata.name))).toEqual(
      new Set(['blog', 'shop']),
    )
    expect((await environment.client.get(Secret, 'seamark/cluster-fra1')).metadata.labels).toEqual({
      'seamark.io/cluster': 'fra1',
    })
  })

  it.skipIf(real?.isMissing ?? true)(
    `examples/deploy works with exactly its RBAC on a real API server, ${crdsInUse}`,
    async () => {
      if (real === undefined) throw new Error('no real environment')
      await using environment = await real.start()
      await apply(environment, 'deploy/seamark.yaml')
      await apply(environment, 'contour/load-balancer.yaml')
      await apply(environment, 'contour/shop.yaml')
      await setAddresses(environment.client, 'projectcontour/envoy', [{ ip: '192.0.2.10' }])
      expect(
        (await environment.client.get(Service, 'projectcontour/envoy')).status?.loadBalancer?.ingress,
      ).toHaveLength(1)
      const map = documents('deploy/seamark.yaml').find((document) => document.kind === 'ConfigMap') as
        | { data?: Record<string, string> }
        | undefined
      const loaded = loadConfig({ file: map?.data?.['config.yaml'] ?? '', flags: { mode: 'enforce' } })
      if (!loaded.ok) throw new Error(loaded.faults.join('; '))
      const groups = ['system:serviceaccounts', 'system:serviceaccounts:seamark', 'system:authenticated']
      const kubeconfig = await environment.userKubeconfig('system:serviceaccount:seamark:seamark', groups)
      const refused: string[] = []
      const cluster = connect(configFromText(kubeconfig), {
        fieldManager: 'contour-plus',
        observer: {
          request({ method, code }) {
            if (code === '403') refused.push(method)
          },
        },
      })
      const controller = new AbortController()
      const { publish, wildcard, leaderElection } = loaded.config
      const done = runApp(
        {
          cluster,
          mode: 'enforce',
          namespace: 'seamark',
          publish: publishOptions(publish),
          wildcard: wildcardOptions(wildcard),
          leader: { lease: leaderElection.lease, namespace: 'seamark' },
        },
        controller.signal,
      )
      await eventually('the record', async () => environment.client.find(DNSEndpoint, 'shop/shop'), undefined, 15_000)
      await eventually(
        'the certificate',
        async () => environment.client.find(Certificate, 'shop/shop'),
        undefined,
        15_000,
      )
      const blog = await eventually(
        'blog',
        async () => environment.client.find(DNSEndpoint, 'shop/blog'),
        undefined,
        15_000,
      )
      expect(blog.spec.endpoints[0]?.recordTTL).toBe(300)
      const reported = await eventually(
        'the condition',
        async () => environment.client.find(HTTPProxy, 'shop/shop'),
        (object) => (object.status?.conditions ?? []).length > 0,
      )
      expect(reported.status?.conditions).toMatchObject([
        { type: 'seamark.io/Published', status: 'True', reason: 'Published' },
      ])
      controller.abort()
      await done
      await cluster.close()
      expect(refused).toEqual([])
    },
  )
})
