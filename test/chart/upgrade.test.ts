/**
 * From an older release of the chart to this one, with Helm 4 (which applies on the server) and with Helm 3 (which patches), while
 * the manager and people write to the same objects; and to a release from what kubectl has applied.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { ConfigMap, CustomResourceDefinition, Namespace } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { HTTPProxy } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../integration/dns/peers.ts'
import { crds } from '../integration/publish/test-environment.ts'
import { accountOf, AuditedPlane } from './audited-plane.ts'
import { CHART, helm, type HelmName, helmOk, HELMS, manifestsOf, pathOf } from './helm.ts'
import { Installation } from './installation.ts'
import { eventually, put } from './lives/life.ts'
import { buildBundle } from './manager.ts'

const isMissing = !needs('kube-apiserver', 'etcd', 'helm')
const LIMIT_MS = 120_000
const CRD = 'dnsloadbalancers.loadbalancer.gardener.cloud'

interface Webhooks extends Obj {
  webhooks: { timeoutSeconds?: number; clientConfig: { caBundle?: string } }[]
}
const Validating = kind<Webhooks>({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
})

const config = {
  allowLoopback: true,
  publish: { services: [{ service: 'shop/lb' }] },
  records: { owner: 'upgrade' },
  balance: { enabled: true },
}
const values = { mode: 'enforce', admission: { enabled: true, timeoutSeconds: 1 }, config }

describe.skipIf(isMissing)('an upgrade', () => {
  let plane: AuditedPlane
  let folder = ''
  let older = ''
  beforeAll(async () => {
    buildBundle()
    folder = mkdtempSync(join(tmpdir(), 'seamark-upgrade-'))
    older = join(folder, 'seamark')
    cpSync(CHART, older, { recursive: true })
    const file = join(older, 'Chart.yaml')
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('ersion: 0.1.0', 'ersion: 0.0.9'))
    plane = await AuditedPlane.start(crds())
    await plane.client.create(Namespace, { metadata: { name: 'shop' } })
  }, LIMIT_MS)
  afterAll(async () => {
    await plane?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })

  /** The CA bundles that the manager has written into objects of the chart. */
  const bundles = async (): Promise<string[]> => {
    const crd = await plane.client.find(CustomResourceDefinition, CRD)
    const found = await plane.client.find(Validating, 'seamark')
    const all = [
      crd?.spec.conversion?.webhook?.clientConfig?.caBundle,
      ...(found?.webhooks.map(({ clientConfig }) => clientConfig.caBundle) ?? []),
    ]
    return all.map((each) => each ?? '')
  }

  it.each(HELMS)(
    'with %s meets no conflict, and takes nothing away that others have written',
    async (name: HelmName) => {
      if (!needs(name)) return
      const { client } = plane
      const home = `upgrade-${name}`
      const kubeconfig = plane.plane.kubeconfig()
      await using installation = new Installation(plane, home, name)
      expect(await installation.apply(values, older)).toContain('Seamark 0.0.9 runs')
      const port = await freePort()
      await installation.start('--admission-address', `127.0.0.1:${port}`)
      const before = await eventually('CA bundles', bundles, (all) => all.every((each) => each !== ''))

      // Written all the time: sources of the manager, and the object that the chart, the manager and people share.
      let count = 0
      const work = { isOver: false }
      const changing = (async () => {
        for (; !work.isOver; count++) {
          await put(plane, HTTPProxy, {
            metadata: { namespace: 'shop', name: `shop-${count % 3}` },
            spec: {
              virtualhost: { fqdn: `shop-${count}.upgrade.test` },
              routes: [{ services: [{ name: 'web', port: 80 }] }],
            },
          })
          await client.patch(ConfigMap, `${home}/seamark`, 'merge', {
            metadata: { annotations: { 'example.com/count': String(count) } },
          })
        }
      })()
      const changed = { ...values, admission: { ...values.admission, timeoutSeconds: 2 } }
      await installation.apply({ ...changed, config: { ...config, logLevel: 'debug' } })
      // Nothing is different: nothing is refused either.
      await installation.apply({ ...changed, config: { ...config, logLevel: 'debug' } })
      work.isOver = true
      await changing
      expect(count).toBeGreaterThan(5)
      expect(await bundles()).toEqual(before)
      const map = await client.get(ConfigMap, `${home}/seamark`)
      expect(map.metadata.labels?.['helm.sh/chart']).toBe('seamark-0.1.0')
      expect(map.metadata.annotations?.['example.com/count']).toBe(String(count - 1))
      expect(map.data?.['config.yaml']).toContain('logLevel: debug')
      const { webhooks } = await client.get(Validating, 'seamark')
      expect(webhooks.map(({ timeoutSeconds }) => timeoutSeconds)).toEqual(webhooks.map(() => 2))

      await helmOk(name, ['rollback', 'seamark', '1', '-n', home], { kubeconfig })
      expect(await bundles()).toEqual(before)
      expect((await client.get(ConfigMap, `${home}/seamark`)).metadata.labels?.['helm.sh/chart']).toBe('seamark-0.0.9')
      expect(plane.denied(accountOf(home, 'seamark'))).toEqual([])

      await installation.stop()
      const said = await helmOk(name, ['uninstall', 'seamark', '-n', home], { kubeconfig })
      expect(said).toContain(CRD)
      const kept = await client.list(CustomResourceDefinition, { labelSelector: 'app.kubernetes.io/part-of=seamark' })
      expect(kept.items).toHaveLength(3)
      for (const { metadata } of kept.items) await client.delete(CustomResourceDefinition, metadata.name ?? '')
    },
    LIMIT_MS * 2,
  )

  it.each(HELMS)(
    'with %s is not needed beside an older version in another namespace, which keeps the CRDs',
    async (name: HelmName) => {
      if (!needs(name)) return
      const kubeconfig = plane.plane.kubeconfig()
      const observed = { config: { balance: { enabled: true } } }
      const install = async (release: string, chart: string, more: object = {}) =>
        helm(name, ['install', release, chart, '-n', release, '--create-namespace'], {
          values: { ...observed, ...more },
          kubeconfig,
        })
      expect(await install('old', older)).toMatchObject({ code: 0 })
      const refused = await install('new', CHART)
      expect(refused.code).not.toBe(0)
      expect(refused.stderr).toMatch(/CustomResourceDefinition "\S+" .*exists and cannot be imported/)
      expect(await install('new', CHART, { crds: { enabled: false } })).toMatchObject({ code: 0 })
      for (const release of ['old', 'new']) await helmOk(name, ['uninstall', release, '-n', release], { kubeconfig })
      const kept = await plane.client.list(CustomResourceDefinition, {
        labelSelector: 'app.kubernetes.io/part-of=seamark',
      })
      expect(kept.items).toHaveLength(3)
      for (const { metadata } of kept.items) await plane.client.delete(CustomResourceDefinition, metadata.name ?? '')
    },
    LIMIT_MS,
  )

  it.each(HELMS)(
    'with %s from the plain manifests names what is in the way, and takes it over when it is asked to',
    async (name: HelmName) => {
      if (!needs(name)) return
      const text = readFileSync(join(CHART, '../../examples/deploy/seamark.yaml'), 'utf8')
      for (const manifest of manifestsOf(text)) {
        const path = `${pathOf(manifest)}?fieldManager=kubectl`
        const { status } = await plane.plane.request('PATCH', path, manifest, { type: 'application/apply-patch+yaml' })
        expect(status, path).toBeLessThan(300)
      }
      const argv = ['install', 'seamark', CHART, '-n', 'seamark']
      const kubeconfig = plane.plane.kubeconfig()
      const refused = await helm(name, argv, { kubeconfig })
      expect(refused.code).not.toBe(0)
      expect(refused.stderr).toMatch(/in namespace "seamark" exists and cannot be imported/)
      await helmOk(name, [...argv, '--take-ownership', ...(name === 'helm' ? ['--force-conflicts'] : [])], {
        kubeconfig,
      })
      await helmOk(name, ['uninstall', 'seamark', '-n', 'seamark'], { kubeconfig })
      expect(await plane.client.find(ConfigMap, 'seamark/seamark')).toBeUndefined()
    },
    LIMIT_MS,
  )
})
