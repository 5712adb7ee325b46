/** Helm as a person uses it, on the chart of this checkout. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '@seamark/kit'
import type { Obj } from '@seamark/kube/object'
import { parseAllDocuments } from 'yaml'

export const CHART = join(import.meta.dirname, '../../charts/seamark')

/** The majors, by the name of the program: `TEST_ASSET_HELM` and `TEST_ASSET_HELM3`. */
export const HELMS = ['helm', 'helm3'] as const
export type HelmName = (typeof HELMS)[number]

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export type Manifest = Obj & Record<string, unknown>

export interface Values {
  readonly [key: string]: unknown
}

/** With values in a file. `kubeconfig`: text. */
export async function helm(
  name: HelmName,
  argv: readonly string[],
  { values, kubeconfig, cwd }: { readonly values?: Values; readonly kubeconfig?: string; readonly cwd?: string } = {},
): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-helm-'))
  try {
    const file = (file: string, text: string): string => {
      const path = join(folder, file)
      writeFileSync(path, text, { mode: 0o600 })
      return path
    }
    return await run(
      findProgram(name) ?? name,
      [
        ...argv,
        ...(values === undefined ? [] : ['--values', file('values.json', JSON.stringify(values))]),
        ...(kubeconfig === undefined ? [] : ['--kubeconfig', file('kubeconfig', kubeconfig)]),
      ],
      { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder },
      cwd,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Throws with what Helm said when it did not succeed. */
export async function helmOk(...given: Parameters<typeof helm>): Promise<string> {
  const { code, stdout, stderr } = await helm(...given)
  if (code !== 0) throw new Error(`${given[0]} ${given[1].join(' ')}: ${stderr}`)
  return stdout
}

export async function render(name: HelmName, namespace: string, values: Values): Promise<Manifest[]> {
  return manifestsOf(await helmOk(name, ['template', 'seamark', CHART, '--namespace', namespace], { values }))
}

export function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((document) => document !== null)
}

/** On the API server. */
export function pathOf({ apiVersion = '', kind = '', metadata }: Manifest): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const plural = kind.toLowerCase().replace(/y$/, 'ie').concat('s')
  const namespace = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
  return `${base}${namespace}/${plural}/${metadata.name}`
}

export async function run(
  program: string,
  argv: readonly string[],
  env: Record<string, string> = {},
  cwd?: string,
): Promise<Ran> {
  const child = spawn(program, argv, {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ran = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (ran.stdout += String(chunk)))
  child.stderr.on('data', (chunk) => (ran.stderr += String(chunk)))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...ran }
}
