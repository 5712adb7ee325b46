/**
 * Program of member-clusters.test.ts, in a process of its own: an API server and a manager with a lease that follows member
 * clusters with wildcard and fleet, which share one registry. Prints the kubeconfig of its API server as one line of JSON, and ends when the manager does.
 */
import { createApiServer, newToken, writeKubeconfig } from '@seamark/apiserver'
import { configFromText, connect, CustomResourceDefinition, Namespace } from '@seamark/kube'
import { FleetConfig, fleetCrds, loadBalancerCrds, playgroundCrds, runApp, wildcardDefaults } from '@seamark/operator'

const token = newToken()
const server = createApiServer({ tokens: new Map([[token, { name: 'admin', groups: ['system:masters'] }]]) })
const { url, caPem = '' } = await server.listen({ tls: 'self-signed' })
const kubeconfig = writeKubeconfig({ server: url, caPem, token })
const cluster = connect(configFromText(kubeconfig), { fieldManager: 'contour-plus' })
await cluster.client.create(Namespace, { metadata: { name: 'manager' } })
for (const definition of [...playgroundCrds(), ...fleetCrds(), ...loadBalancerCrds()])
  await cluster.client.create(CustomResourceDefinition, definition)
process.stdout.write(`${JSON.stringify({ kubeconfig })}\n`)
await runApp(
  {
    cluster,
    mode: 'enforce',
    namespace: 'manager',
    wildcard: { ...wildcardDefaults, zone: 'clusters.example.com', removalDelayMs: 400, coalesceMs: 0 },
    fleet: FleetConfig.parse({}),
    allowLoopback: true,
    leader: { lease: 'seamark', namespace: 'manager' },
  },
  new AbortController().signal,
)
