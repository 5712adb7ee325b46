import {
  ConfigMap,
  kind,
  manager,
  setCondition,
  specChanged,
  Terminal,
  untilSignalled,
  withController,
  type Condition,
  type Obj,
} from '@seamark/kube'

// 1. A kind is a value that carries its type.
interface Site extends Obj {
  spec: { host: string; greeting?: string }
  status?: { conditions?: Condition[] }
}
const Site = kind<Site>({ group: 'example.test', version: 'v1', kind: 'Site', plural: 'sites', namespaced: true })

// 2. One manager per process: connections, caches, servers, lease.
const { LEASE, PROBES = ':8081' } = process.env
const mgr = await manager({
  fieldManager: 'site-controller',
  probes: PROBES,
  ...(LEASE === undefined ? {} : { leader: { lease: LEASE, namespace: 'default' } }),
})

// 3. A controller is wiring plus one function.
mgr
  .controller('site', Site, { concurrency: 16, timeout: '30s', when: specChanged })
  .owns(ConfigMap)
  .finalizer('example.test/goodbye', async (site, ctx) => {
    ctx.log.info({ host: site.spec.host }, 'site withdrawn')
  })
  .reconcile(async (site, ctx) => {
    const { name, namespace = '', generation } = site.metadata
    const { host, greeting = 'hello' } = site.spec
    const isDomain = host.includes('.')

    const conditions = setCondition(
      site.status?.conditions,
      {
        type: 'Ready',
        status: isDomain ? 'True' : 'False',
        reason: isDomain ? 'Rendered' : 'NotADomain',
        message: isDomain ? `the page of ${host} is rendered` : `host ${host} has no dot`,
        observedGeneration: generation,
      },
      Date.now(),
    )
    await ctx.status(site, { conditions })
    if (!isDomain) throw new Terminal(`host ${host} is not a domain`)

    const page = {
      metadata: { name: `${name}-page`, namespace },
      data: { 'index.html': `<h1>${greeting} from ${host}</h1>` },
    }
    await ctx.apply(ConfigMap, withController(page, site))
    ctx.event(site, 'Normal', 'Rendered', `the page of ${host} is rendered`)
  })

// 4. Run until told to stop. Resolves after everything has drained; rejects when leadership is lost or a part fails.
await mgr.run(untilSignalled('SIGTERM', 'SIGINT'))
