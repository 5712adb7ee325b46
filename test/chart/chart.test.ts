/** The chart as Helm sees it: values that are accepted, ones that are refused, and what a kube-apiserver says about the result. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, needs } from '@seamark/kit'
import { Namespace } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import { configFromText, connect } from '@seamark/kube'
import { loadConfig } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { allCrds } from './lives/crds.ts'
import {
  CHART,
  helm,
  HELMS,
  helmOk,
  type HelmName,
  type Manifest,
  manifestsOf,
  pathOf,
  render,
  run,
  type Values,
} from './helm.ts'
import { REFUSED, VALUE_SETS } from './value-sets.ts'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'

const NAMESPACE = 'seamark'
const sorted = (manifests: readonly Manifest[]): Manifest[] =>
  manifests.toSorted((a, b) => (`${a.kind} ${a.metadata.name}` < `${b.kind} ${b.metadata.name}` ? -1 : 1))

const templates = new Map<object, Promise<string>>()

/** By Helm 4; several tests look at the same. */
async function rendered(values: Values): Promise<string> {
  const known = templates.get(values)
  if (known !== undefined) return known
  const text = helmOk('helm', ['template', 'seamark', CHART, '-n', NAMESPACE], { values })
  templates.set(values, text)
  return text
}

describe.each(HELMS)('with %s', (name: HelmName) => {
  const isMissing = !needs(name)

  it.skipIf(isMissing).each(Object.entries(VALUE_SETS))(
    'lint --strict accepts %s',
    { concurrent: true },
    async (_what, values) => {
      const { code, stdout } = await helm(name, ['lint', '--strict', CHART], { values })
      expect([code, stdout]).toEqual([0, expect.stringContaining('0 chart(s) failed')])
    },
  )

  it.skipIf(isMissing).each(Object.entries(REFUSED))(
    'refuses %s, with the path and what to do',
    { concurrent: true },
    async (_what, refused) => {
      const { code, stderr } = await helm(name, ['template', 'seamark', CHART, '-n', NAMESPACE], {
        values: refused.values,
      })
      expect(code, stderr).not.toBe(0)
      for (const text of refused.says) expect(stderr).toContain(text)
    },
  )
})

describe.skipIf(!needs('helm'))('what it renders', () => {
  it.each(Object.entries(VALUE_SETS))(
    'is a configuration that the manager accepts: %s',
    { concurrent: true },
    async (_what, values) => {
      const manifests = manifestsOf(await rendered(values))
      const map = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'seamark')
      const file = (map?.['data'] as Record<string, string> | undefined)?.['config.yaml'] ?? ''
      expect(loadConfig({ file })).toMatchObject({ ok: true })
    },
  )

  it('observes by default, and says how to see what it would change and how to enforce', async () => {
    const notes = await helmOk('helm', ['install', 'seamark', CHART, '-n', NAMESPACE, '--dry-run=client'])
    expect(notes).toContain('mode: observe')
    expect(notes).toContain('seamark plan --config')
    expect(notes).toContain('--set mode=enforce --set config.records.owner=NAME')
  })

  it('has a value for every key of its schema, and a key for every value', () => {
    const keysOf = (value: unknown): string[] => Object.keys(value as object).toSorted()
    const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as object
    const { properties } = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as {
      properties: Record<string, unknown>
    }
    expect(keysOf(properties).filter((key) => key !== 'global')).toEqual(keysOf(values))
  })

  it('grants no wildcard, and reads Secrets in other namespaces for the gateway and fleet.tlsSecrets alone', async () => {
    const manifests = await render('helm', NAMESPACE, VALUE_SETS['everything'] ?? {})
    const roles = manifests.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')
    const rules = roles.flatMap((role) =>
      (role['rules'] as { apiGroups: string[]; resources: string[]; verbs: string[] }[]).map((rule) => ({
        role,
        rule,
      })),
    )
    expect(rules.filter(({ rule }) => JSON.stringify(rule).includes('"*"'))).toEqual([])
    const withSecrets = rules
      .filter(({ role, rule }) => role.kind === 'ClusterRole' && rule.resources.includes('secrets'))
      .map(({ role }) => role.metadata.name)
    expect(withSecrets).toEqual(['seamark-gateway-seamark'])
  })

  it.skipIf(!needs('helm3')).each(Object.entries(VALUE_SETS))(
    'is the same with Helm 3: %s',
    { concurrent: true },
    async (_what, values) => {
      expect(sorted(await render('helm3', NAMESPACE, values))).toEqual(sorted(manifestsOf(await rendered(values))))
    },
  )
})

const kubectl = process.env['SEAMARK_KUBECTL'] ?? findProgram('kubectl') ?? ''

describe.skipIf(!needs('helm', 'kube-apiserver', 'etcd') || kubectl === '')('on a kube-apiserver', () => {
  let plane: ControlPlane
  let folder = ''
  beforeAll(async () => {
    plane = await ControlPlane.start({ crds: allCrds() })
    folder = mkdtempSync(join(tmpdir(), 'seamark-chart-'))
    writeFileSync(join(folder, 'kubeconfig'), plane.kubeconfig(), { mode: 0o600 })
    const cluster = connect(configFromText(plane.kubeconfig()))
    const labels = {
      'pod-security.kubernetes.io/enforce': 'restricted',
      'pod-security.kubernetes.io/warn': 'restricted',
    }
    await cluster.client.create(Namespace, { metadata: { name: NAMESPACE, labels } })
    await cluster.close()
  }, 120_000)
  afterAll(async () => {
    await plane?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it.each(Object.entries(VALUE_SETS))(
    'every object of %s is valid, and its Pods fit a restricted namespace',
    async (_what, values) => {
      const text = await rendered(values)
      const refusals = manifestsOf(text).map(async (manifest) => refusalOf(plane, manifest))
      const file = join(folder, 'manifests.yaml')
      writeFileSync(file, text)
      const argv = [
        'apply',
        '--dry-run=server',
        '--validate=true',
        '-f',
        file,
        '--kubeconfig',
        join(folder, 'kubeconfig'),
      ]
      const { code, stdout, stderr } = await run(kubectl, argv, { HOME: folder })
      expect((await Promise.all(refusals)).filter((each) => each !== '')).toEqual([])
      expect(stderr.split('\n').filter((line) => line !== '' && !line.includes('last-applied-configuration'))).toEqual(
        [],
      )
      expect([code, stdout]).toEqual([0, expect.stringContaining('deployment.apps/seamark created')])
    },
    60_000,
  )
})

/** As `kubectl apply --dry-run=server --validate=strict`, which older ones do not have. */
async function refusalOf(plane: ControlPlane, manifest: Manifest): Promise<string> {
  const { kind = '', metadata } = manifest
  const path = `${pathOf(manifest)}?dryRun=All&fieldValidation=Strict&fieldManager=kubectl&force=true`
  const { status, body } = await plane.request('PATCH', path, manifest, { type: 'application/apply-patch+yaml' })
  return status < 300 ? '' : `${kind} ${metadata.name}: ${JSON.stringify(body)}`
}
