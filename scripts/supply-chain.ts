/**
 * What a user who installs Seamark must be able to trust, checked from the files alone: the lock file, install scripts, the roles
 * of the examples and the base of the image. Each function returns one line per fault.
 */
import { parseAllDocuments, parseDocument } from 'yaml'

interface LockedPackage {
  readonly link?: boolean
  readonly inBundle?: boolean
  readonly integrity?: string
  readonly resolved?: string
  readonly hasInstallScript?: boolean
}

export interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

/**
 * Every package from a registry has a SHA-512 digest, none has an address of its own (a lock file that names one bypasses the
 * registry), and each install script is allowed or refused by name in `allowScripts` of package.json.
 */
export function findLockFaults(lock: LockFile, allowScripts: Readonly<Record<string, boolean>>): string[] {
  const installed = Object.entries(lock.packages).flatMap(([path, entry]) => {
    const name = path.split('node_modules/').at(-1) ?? ''
    return path.includes('node_modules/') && entry.link !== true ? [{ path, name, entry }] : []
  })
  const scripts = new Set(installed.filter(({ entry }) => entry.hasInstallScript === true).map(({ name }) => name))
  return [
    ...installed.flatMap(({ path, entry: { integrity, inBundle, resolved } }) => [
      ...(inBundle === true || /^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')
        ? []
        : [`${path} has no SHA-512 digest`]),
      ...(resolved === undefined ? [] : [`${path} is resolved to an address`]),
    ]),
    ...[...scripts]
      .filter((name) => !Object.hasOwn(allowScripts, name))
      .map((name) => `${name} has an install script that allowScripts does not name`),
    ...Object.keys(allowScripts)
      .filter((name) => !scripts.has(name))
      .map((name) => `allowScripts names ${name}, which has no install script`),
  ]
}

interface Rule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly verbs?: readonly string[]
  readonly resourceNames?: readonly string[]
}

interface Manifest {
  readonly kind?: string
  readonly metadata?: { readonly name?: string }
  readonly rules?: readonly Rule[]
  readonly roleRef?: { readonly kind?: string; readonly name?: string }
}

/** With one of these an account gives itself every other right. */
const SELF_GRANTING = ['escalate', 'bind', 'impersonate']
const READS_ALL = ['get', 'list', 'watch', '*']
const READS = ['get', 'list', 'watch']
/** Whatever the verb: with `get` the API server starts a command in a Pod, too, over a WebSocket. */
const ALWAYS_REFUSED = new Set([
  'pods/attach',
  'pods/ephemeralcontainers',
  'pods/exec',
  'pods/portforward',
  'pods/proxy',
  'services/proxy',
  'nodes/proxy',
  'serviceaccounts/token',
])
/** What is written there gives its author rights, runs as another account, or signs its certificates. */
const NEVER_WRITTEN = new Set([
  'roles',
  'clusterroles',
  'rolebindings',
  'clusterrolebindings',
  'pods',
  'deployments',
  'daemonsets',
  'statefulsets',
  'replicasets',
  'replicationcontrollers',
  'jobs',
  'cronjobs',
  'certificatesigningrequests',
  'certificatesigningrequests/approval',
  'certificatesigningrequests/status',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
])
/** Every object of the API server passes through these: the CA of one that is named may be written, and nothing else. */
const WEBHOOKS = new Set(['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'])
const WRITES_BY_NAME = ['patch', 'update']

/**
 * A role of an example contains no wildcard and nothing with which its account could extend its rights (verbs, commands in Pods,
 * tokens, workloads, roles and bindings, webhooks but one that is named), and no ClusterRole that is bound in every namespace reads Secrets, unless `secretReaders` has its name with the reason.
 */
export function findRoleFaults(
  path: string,
  text: string,
  secretReaders: Readonly<Record<string, string>> = {},
): string[] {
  const manifests = parseAllDocuments(text).map((document) => (document.toJS() ?? {}) as Manifest)
  const boundEverywhere = new Set(
    manifests.filter(({ kind }) => kind === 'ClusterRoleBinding').map(({ roleRef }) => roleRef?.name ?? ''),
  )
  return manifests.flatMap(({ kind, metadata, rules = [] }) => {
    if (kind !== 'ClusterRole' && kind !== 'Role') return []
    const name = metadata?.name ?? ''
    const isEverywhere = kind === 'ClusterRole' && boundEverywhere.has(name) && !Object.hasOwn(secretReaders, name)
    return rules.flatMap((rule) => faultsOfRule(rule, isEverywhere)).map((fault) => `${path}: ${kind} ${name} ${fault}`)
  })
}

function faultsOfRule(
  { apiGroups = [], resources = [], verbs = [], resourceNames = [] }: Rule,
  isEverywhere: boolean,
): string[] {
  const readsSecrets =
    resources.includes('secrets') && resourceNames.length === 0 && verbs.some((verb) => READS_ALL.includes(verb))
  return [
    ...([...apiGroups, ...resources, ...verbs].some((each) => each.includes('*')) ? ['contains a wildcard'] : []),
    ...verbs.filter((verb) => SELF_GRANTING.includes(verb)).map((verb) => `contains the verb ${verb}`),
    ...resources
      .filter((each) => ALWAYS_REFUSED.has(each))
      .map((each) => `contains ${each}: commands, connections or tokens of others`),
    ...resources
      .filter((each) => NEVER_WRITTEN.has(each) && verbs.some((verb) => isWrite(verb)))
      .map((each) => `writes ${each}`),
    ...resources
      .filter((each) => WEBHOOKS.has(each) && verbs.some((verb) => isWrite(verb) && !isByName(verb, resourceNames)))
      .map((each) => `writes ${each} that it does not name`),
    ...(isEverywhere && readsSecrets ? ['reads the Secrets of every namespace'] : []),
  ]
}

/** The verbs of SELF_GRANTING and wildcards are faults of their own. */
function isWrite(verb: string): boolean {
  return !READS.includes(verb) && !SELF_GRANTING.includes(verb) && verb !== '*'
}

function isByName(verb: string, resourceNames: readonly string[]): boolean {
  return resourceNames.length > 0 && WRITES_BY_NAME.includes(verb)
}

const BASE = /^(FROM\s+(?:--platform=\S+\s+)?)(?<image>[^\s@]+)(?:@(?<digest>\S+))?/gm
const DIGEST = /^sha256:[0-9a-f]{64}$/

/** The Containerfile with each base image pinned to the digest; throws for what is no digest. */
export function pinBase(containerfile: string, digest: string): string {
  if (!DIGEST.test(digest)) throw new Error(`${digest} is no digest; it has the form sha256: and 64 hexadecimal digits`)
  const images = new Set(basesOf(containerfile).map(({ image }) => image))
  if (images.size !== 1) throw new Error(`one digest cannot pin ${images.size} base images: ${[...images].join(', ')}`)
  return containerfile.replace(BASE, `$1$<image>@${digest}`)
}

/** The bases that a later build may find changed. */
export function findUnpinnedBases(containerfile: string): string[] {
  return basesOf(containerfile).flatMap(({ image, digest }) =>
    DIGEST.test(digest) ? [] : [`base image ${image} is not pinned to a digest; run scripts/release.ts --base DIGEST`],
  )
}

function basesOf(containerfile: string): { image: string; digest: string }[] {
  return [...containerfile.matchAll(BASE)].map(({ groups }) => ({
    image: groups?.['image'] ?? '',
    digest: groups?.['digest'] ?? '',
  }))
}

/** The values of the chart with an image of theirs pinned; throws for what is no digest. @param path such as `gateway.image` */
export function pinImage(values: string, path: string, digest: string): string {
  if (!DIGEST.test(digest)) throw new Error(`${digest} is no digest; it has the form sha256: and 64 hexadecimal digits`)
  const document = parseDocument(values)
  document.setIn([...path.split('.'), 'digest'], digest)
  return document.toString({ lineWidth: 0 })
}

/** The images of the chart that a later installation may find changed. */
export function findUnpinnedImages(values: string, paths: readonly string[]): string[] {
  const document = parseDocument(values)
  return paths.flatMap((path) =>
    DIGEST.test(String(document.getIn([...path.split('.'), 'digest'])))
      ? []
      : [`${path} of the chart is not pinned to a digest`],
  )
}
