/**
 * Every kubectl of this machine, and how one is run: with its own home, cache and working folder, never with the
 * user's configuration.
 *
 * Looked for in SEAMARK_KUBECTL (paths, separated as in PATH), then as any other program (@seamark/kit), then beside
 * each of these as `kubectl.1.NN`, which is how cloud command lines install several. A program without a version is not
 * a kubectl. SEAMARK_KUBECTL_EXTREMES=1 takes only the oldest and the newest, where time is short (CI).
 */
import { execFileSync, spawn } from 'node:child_process'
import { readdirSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { findProgram } from '@seamark/kit'

export interface Kubectl {
  path: string
  /** 36 for v1.36.3. */
  minor: number
  /** v1.36.3, for the name of a test. */
  version: string
}

export interface Outcome {
  exit: number
  stdout: string
  stderr: string
}

export function findKubectls(): Kubectl[] {
  const named = (process.env['SEAMARK_KUBECTL'] ?? '').split(delimiter).filter((path) => path !== '')
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'kubectl'))
  const first = [...named, findProgram('kubectl') ?? '', ...onPath].flatMap(realPathOf)
  const paths = new Set([...first, ...first.flatMap(versionedSiblings)])
  const versions = new Map([...paths].flatMap(kubectlAt).map((kubectl) => [kubectl.version, kubectl]))
  const all = [...versions.values()].toSorted((left, right) => left.minor - right.minor)
  const isExtreme = (index: number): boolean => index === 0 || index === all.length - 1
  return process.env['SEAMARK_KUBECTL_EXTREMES'] === '1' ? all.filter((_, index) => isExtreme(index)) : all
}

export interface RunOptions {
  cwd: string
  env: NodeJS.ProcessEnv
  stdin?: string
  timeoutMs?: number
  /** A stream: ended as soon as its output matches. */
  stopAt?: RegExp
}

/** Runs until it ends, or until its output matches `stopAt`, or until it is killed after `timeoutMs`. */
export async function runKubectl(kubectl: Kubectl, args: readonly string[], options: RunOptions): Promise<Outcome> {
  const { cwd, env, stdin = '', timeoutMs = 30_000, stopAt } = options
  return new Promise((resolve, reject) => {
    const child = spawn(kubectl.path, args, { cwd, env, stdio: 'pipe' })
    child.stdin.once('error', () => undefined).end(stdin)
    const outcome: Outcome = { exit: -1, stdout: '', stderr: '' }
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      outcome.stdout += text
      if (stopAt?.test(outcome.stdout) === true) child.kill('SIGTERM')
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => (outcome.stderr += text))
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(timer)
      resolve({ ...outcome, exit: code ?? -1 })
    })
  })
}

/** Arguments as a person types them: blanks separate, single quotes group. */
export function splitArguments(line: string): string[] {
  return [...line.matchAll(/(?:[^\s']+|'[^']*')+/g)].map(([word]) => word.replaceAll("'", ''))
}

function realPathOf(path: string): string[] {
  try {
    return path === '' ? [] : [realpathSync(path)]
  } catch {
    return []
  }
}

function versionedSiblings(path: string): string[] {
  const folder = dirname(path)
  return readdirSync(folder)
    .filter((name) => /^kubectl\.1\.\d+$/.test(name))
    .map((name) => join(folder, name))
}

function kubectlAt(path: string): Kubectl[] {
  try {
    const text = execFileSync(path, ['version', '--client', '-o', 'json'], { encoding: 'utf8', stdio: 'pipe' })
    const { clientVersion } = JSON.parse(text) as { clientVersion: { minor: string; gitVersion: string } }
    return [{ path, minor: Number.parseInt(clientVersion.minor, 10), version: clientVersion.gitVersion }]
  } catch {
    return []
  }
}
