/**
 * The directions of imports (ARCHITECTURE.md, Packages and Folders), and what violates them.
 *
 * Tests beside the code may import any folder of their package; between packages they follow the same directions.
 */
import { dirname, join, relative } from 'node:path/posix'

/** What each package may import of the others. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  dns: [],
  kube: [],
  regexp: [],
  apiserver: ['kube/object', 'kube/certificates', 'kube/private-file', 'regexp'],
  dialects: ['kube/object'],
  operator: ['kube', 'dns', 'dialects'],
  gateway: ['kube', 'dialects', 'regexp'],
  dashboard: ['kube', 'dns', 'operator'],
}
/** What tests import in addition. */
const TEST_HELPERS = /^(kit|kube\/testing)(\/|$)/

/** Sources that start a process (SECURITY.md): a credential plug-in of the user's own kubeconfig, and the program that --envoy names. */
const STARTS_PROCESS = ['packages/kube/src/config/exec-credential.ts', 'packages/gateway/src/envoy/process.ts']

interface Folder {
  /** From left to right, names separated by spaces. Entries of one layer import each other only within `together`. */
  readonly layers: readonly (string | { readonly together: string })[]
  /** Restricts what an entry imports further. */
  readonly only?: Readonly<Record<string, string>>
  /** Paths in the folder: the first may import the second. */
  readonly exceptions?: readonly (readonly [from: string, to: string])[]
}

/**
 * An entry of a folder, a file or another folder, imports only entries of the layers to its left. A folder that is in no layer
 * is a violation; a file that is in none may import and be imported by all.
 */
const FOLDERS: Readonly<Record<string, Folder>> = {
  'packages/dns/src': {
    layers: ['printable.ts', 'error.ts', 'wire', 'zone client', 'store secondary', 'server'],
    only: { store: 'error.ts wire zone' },
  },
  'packages/kube/src': {
    layers: [
      {
        together:
          'object certificates.ts clock.ts duration.ts errors.ts log.ts private-file.ts requested-wait.ts stop-signal.ts x509-library.ts',
      },
      'decode crd',
      'config',
      'transport',
      'client',
      'watch',
      'cache',
      'apply',
      'controller',
      'webhook',
      'manager',
      'testing',
    ],
  },
  'packages/apiserver/src': {
    layers: [
      { together: 'builtin cel codec exchange openapi protobuf resource schema store table validation' },
      'apply patch',
      { together: 'admission auth controllers crd handlers strategies' },
      'http bootstrap.ts',
      'data',
      'cluster.ts',
    ],
    only: { apply: 'codec schema', patch: 'codec schema', table: 'codec' },
  },
  'packages/regexp/src': {
    layers: [
      'escape.ts',
      'char-class.ts',
      'syntax.ts',
      'program.ts',
      'automaton.ts finder.ts',
      'matcher.ts full-matcher.ts',
    ],
  },
  'packages/gateway/src': {
    layers: ['ir convert', 'draft', 'sources', 'build', 'proxy xds', 'envoy', 'controller', 'explain'],
    only: { proxy: 'ir', envoy: 'ir xds' },
  },
  'packages/gateway/src/proxy': { layers: ['request', 'listen upstream', 'handler.ts', 'proxy.ts'] },
  'packages/operator/src': {
    layers: [
      'reasons.ts duration.ts expected-status.ts yaml-document.ts rights',
      'finding.ts metrics.ts verdict.ts',
      'api authority clusters rrset health',
      'hosts',
      'providers process',
      'safety',
      'serve',
      'publish wildcard fleet records',
      'balance',
      'dnslb explain',
      'config-gaps.ts',
      'config.ts',
      'app',
    ],
    only: {
      authority: '',
      health: 'expected-status.ts',
      rrset: 'reasons.ts',
      providers: 'api rrset',
      hosts: 'api',
      balance: 'reasons.ts duration.ts expected-status.ts api authority hosts rrset health providers process safety',
    },
    // Load balancers whose records go to a DNS provider are written by the engine of records.
    exceptions: [['balance/provider', 'records']],
  },
  // What runs in the browser knows the values of the page, and nothing else of ours.
  'packages/dashboard/src': { layers: ['api', 'page view', 'server'] },
  'packages/cli/src': {
    layers: [
      'command.ts output-form.ts request-resource.ts verb-examples.ts version.ts',
      'command-log.ts failure.ts fault.ts manifest-files.ts prepare.ts',
      'flags',
      // The table of verbs loads a command when it is run, and the completion reads the table.
      { together: 'commands verbs.ts' },
      'main.ts',
    ],
  },
  'packages/cli/src/commands': {
    layers: ['balance check completion dig explain fleet gateway publish records servers', 'run', 'playground'],
  },
  'packages/operator/src/publish': { layers: ['sources', 'decide', 'guard', 'act', 'report'] },
  'packages/operator/src/fleet': { layers: ['roots', 'decide', 'members', 'dns', 'reconcile'] },
  'packages/operator/src/balance': { layers: ['source', 'decide', 'write', 'report provider'] },
  'packages/operator/src/records': {
    layers: ['state', 'plan', 'guards', 'stores', 'execute', 'sync'],
  },
}

export interface SourceFile {
  /** From the root of the project. */
  readonly path: string
  readonly text: string
}

/** One line for each import in a wrong direction. */
export function findWrongImports(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    importsOf(text).flatMap((specifier) => {
      const fault = specifier.startsWith('.') ? faultOfFolder(path, specifier) : faultOfPackage(path, specifier)
      return fault === undefined ? [] : [`${path} imports ${specifier}: ${fault}`]
    }),
  )
}

function importsOf(text: string): string[] {
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, specifier = '']) => specifier)
}

function faultOfPackage(path: string, specifier: string): string | undefined {
  const name = /^packages\/(\w+)\/src\//.exec(path)?.[1] ?? ''
  const always = PACKAGES[name]
  if (always !== undefined && /^(node:)?child_process$/.test(specifier) && !mayStartProcess(path))
    return `only ${STARTS_PROCESS.join(' and ')} start a process (SECURITY.md)`
  if (always === undefined || !specifier.startsWith('@seamark/')) return undefined
  const imported = specifier.slice('@seamark/'.length)
  const [owner] = imported.split('/')
  if (TEST_HELPERS.test(imported)) {
    const isKnown = owner === 'kit' || always.some((entry) => entry.split('/')[0] === owner)
    return isKnown && mayUseHelpers(path)
      ? undefined
      : 'only tests import helpers of tests, of packages that theirs imports'
  }
  if (always.some((entry) => imported === entry || imported.startsWith(`${entry}/`))) return undefined
  return `packages/${name} imports of the others only: ${always.join(', ')}`
}

function faultOfFolder(path: string, specifier: string): string | undefined {
  const target = join(dirname(path), specifier)
  if (path.startsWith('test/'))
    return target.startsWith('packages/') ? 'tests import packages by their names' : undefined
  if (isTest(path)) return undefined
  for (const [root, folder] of Object.entries(FOLDERS)) {
    if (!path.startsWith(`${root}/`) || !target.startsWith(`${root}/`)) continue
    const fault = faultWithin(root, folder, relative(root, path), relative(root, target))
    if (fault !== undefined) return fault
  }
  return undefined
}

function faultWithin(root: string, folder: Folder, path: string, target: string): string | undefined {
  const [from, to] = [entryOf(path), entryOf(target)]
  if (from === to) return undefined
  for (const entry of [from, to])
    if (layerOf(folder, entry) < 0 && !entry.endsWith('.ts'))
      return `${root}/${entry} is in no layer of scripts/import-directions.ts`
  const [left, right] = [layerOf(folder, to), layerOf(folder, from)]
  if (left < 0 || right < 0) return undefined
  if (folder.exceptions?.some(([a, b]) => path.startsWith(`${a}/`) && target.startsWith(`${b}/`))) return undefined
  const areTogether = left === right && typeof folder.layers[left] === 'object'
  if (left >= right && !areTogether) return `${to} is not to the left of ${from}`
  const only = folder.only?.[from]
  return only === undefined || only.split(' ').includes(to) ? undefined : `${from} imports only: ${only}`
}

function mayStartProcess(path: string): boolean {
  return STARTS_PROCESS.includes(path) || mayUseHelpers(path)
}

function mayUseHelpers(path: string): boolean {
  return isTest(path) || path.startsWith('packages/kube/src/testing/')
}

function layerOf({ layers }: Folder, entry: string): number {
  return layers.findIndex((layer) => (typeof layer === 'string' ? layer : layer.together).split(' ').includes(entry))
}

/** The first folder of a path, or the file. */
function entryOf(path: string): string {
  return path.split('/')[0] ?? ''
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts')
}
