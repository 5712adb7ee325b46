import { ConfigMap, manager, setCondition, specChanged, Terminal, untilSignalled, withController } from '@seamark/kube'
import { conditionsSchema, customResourceDefinition, defineKind } from '@seamark/kube/crd'
import { z } from 'zod'

// 1. A kind: one declaration gives the type, the schema and the CRD.
const Site = defineKind({
  group: 'example.test',
  version: 'v1',
  kind: 'Site',
  plural: 'sites',
  namespaced: true,
  spec: z.object({ host: z.string(), greeting: z.string().default('hello') }),
  status: z.object({ conditions: conditionsSchema.optional() }),
})
if (process.argv[2] === 'crd') {
  process.stdout.write(JSON.stringify(customResourceDefinition(Site)))
  process.exit(0)
}

// 2. One manager per process: connections, caches, servers, lease.
const { LEASE, PROBES = ':8081' } = process.env
const mgr = await manager({
  fieldManager: 'site-controller',
  probes: PROBES,
  ...(LEASE !== undefined && { leader: { lease: LEASE, namespace: 'default' } }),
})

// 3. A controller: its watches and one function.
mgr
  .controller('site', Site, { concurrency: 16, timeout: '30s', when: specChanged })
  .owns(ConfigMap)
  .finalizer('example.test/goodbye', async (site, ctx) => {
    ctx.log.info({ host: site.spec.host }, 'site withdrawn')
  })
  .reconcile(async (site, ctx) => {
    const { name, namespace = '', generation } = site.metadata
    const { host, greeting } = site.spec
    const isDomain = host.includes('.')
    const ready = {
      type: 'Ready',
      status: isDomain ? 'True' : 'False',
      reason: isDomain ? 'Rendered' : 'NotADomain',
      message: isDomain ? `the page of ${host} is rendered` : `host ${host} has no dot`,
      observedGeneration: generation,
    } as const
    await ctx.status(site, { conditions: setCondition(site.status?.conditions, ready, Date.now()) })
    if (!isDomain) throw new Terminal(`host ${host} is not a domain`)

    const data = { 'index.html': `<h1>${greeting} from ${host}</h1>` }
    await ctx.apply(ConfigMap, withController({ metadata: { name: `${name}-page`, namespace }, data }, site))
    ctx.event(site, 'Normal', 'Rendered', ready.message)
  })

// 4. Runs until the signal; resolves when everything has stopped, rejects when a part fails. Without the lease it waits.
await mgr.run(untilSignalled('SIGTERM', 'SIGINT'))
