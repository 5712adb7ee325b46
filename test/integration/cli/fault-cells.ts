/**
 * What each command says when something that it needs is not there: one entry per command and fault. A cell is a call with
 * what it prints and its exit code; a call that goes on, with what it logs; or why the command cannot meet the fault.
 *
 * Words in capitals stand for files of the test: kubeconfigs of a server without our kinds (KINDLESS), of a user without
 * rights (NOBODY), of a server that is down (DOWN), and one that is whole (ADMIN); GONE is no file, BOMB is YAML whose
 * aliases expand without bound, ALGORITHM a configuration with a TSIG algorithm that does not exist, CONFIG a good one.
 */
export const FAULTS = ['kind', 'namespace', 'right', 'server', 'file', 'algorithm', 'alias'] as const
type Fault = (typeof FAULTS)[number]

interface Ends {
  readonly argv: string
  readonly says: RegExp
  /** @default 1 */
  readonly code?: number
}

interface GoesOn {
  readonly argv: string
  readonly logs: RegExp
}

/** It is what the command is for: it prints the fault as what it found, with exit code 2. */
interface Finds {
  readonly argv: string
  readonly prints: RegExp
}

/** A text is the reason why a command cannot meet a fault. */
type Cell = Ends | GoesOn | Finds | string

const ends = (argv: string, says: RegExp, code = 1): Ends => ({ argv, says, code })
const finds = (argv: string, prints: RegExp): Finds => ({ argv, prints })
const goesOn = (argv: string, logs: RegExp): GoesOn => ({ argv, logs })

const NO_FILE = /cannot read \S*gone.*; check the path \S*gone/
const DOWN = /cannot connect to 127\.0\.0\.1:\d+: .*ECONNREFUSED.*; start the API server, or choose another one/
const BOMB =
  /bomb\S*(:\d+: the document has unknown aliases.*; write their values out|: aliases \(\*name\) are not accepted; write)/
const ALGORITHM = /algorithm.*hmac-sha256/
const BOMB_KUBECONFIG = /bomb\S*: kubeconfig is not usable YAML: too many or unresolved aliases/

/** The API server does not know the kind; ours have a command that prints the CRDs. */
const noKind = (resource: string): RegExp =>
  new RegExp(`127\\.0\\.0\\.1:\\d+ does not know ${resource}; apply the CRDs: seamark crds \\| kubectl apply -f -`)
const noRight = (verb: string, resource: string): RegExp =>
  new RegExp(`user "nobody" may not ${verb} ${resource} .*; grant it in a .*"verbs":\\["${verb}"\\]`)

const NO_CLUSTER = 'it talks to no cluster'
const NO_NAMESPACE = 'the objects that it reads have none'
const NO_DNS = 'it reads no key'
const NO_INPUT = 'it reads no YAML'
const OFFLINE: Pick<Cells, 'kind' | 'namespace' | 'right' | 'server'> = {
  kind: NO_CLUSTER,
  namespace: NO_CLUSTER,
  right: NO_CLUSTER,
  server: NO_CLUSTER,
}
const NOTHING: Pick<Cells, 'file' | 'algorithm' | 'alias'> = {
  file: 'it reads no file',
  algorithm: NO_DNS,
  alias: NO_INPUT,
}

type Cells = Readonly<Record<Fault, Cell>>

/** Commands that read kinds of the fleet on the hub. */
function fleet(call: string, resource: string, verb = 'list'): Cells {
  return {
    kind: ends(`${call} --kubeconfig KINDLESS`, noKind(resource)),
    namespace: NO_NAMESPACE,
    right: ends(`${call} --kubeconfig NOBODY`, noRight(verb, resource)),
    server: ends(`${call} --kubeconfig DOWN`, DOWN),
    file: ends(`${call} --kubeconfig GONE`, /cannot read kubeconfig \S*gone/),
    algorithm: NO_DNS,
    alias: ends(`${call} --kubeconfig BOMB`, BOMB_KUBECONFIG),
  }
}

/** Commands that open providers, and read the switches of the manager in its namespace. */
function records(call: string): Cells {
  return {
    kind: 'it reads ConfigMaps and zones',
    namespace: 'a namespace without guard state is that of a manager which has not run yet',
    right: ends(`${call} --config CONFIG --kubeconfig NOBODY`, noRight('get', 'configmaps')),
    server: ends(`${call} --config CONFIG --kubeconfig DOWN`, DOWN),
    file: ends(`${call} --config GONE`, NO_FILE),
    algorithm: ends(`${call} --config ALGORITHM --kubeconfig ADMIN`, ALGORITHM, 5),
    alias: ends(`${call} --config BOMB`, BOMB, 5),
  }
}

const REFUSED = /ECONNREFUSED/
const RUN = 'run -n gone --publish-enabled --metrics-address 0 --probes-address 0'
const GATEWAY = 'gateway -n gone --http-listen 127.0.0.1:0 --https-listen 127.0.0.1:0'
const CONTOUR_PLUS = 'contour-plus --namespace gone --service-name a/b --metrics-addr 0'

export const CELLS: Readonly<Record<string, Cells>> = {
  adopt: records('adopt --from unmarked a.test'),
  apiserver: {
    ...OFFLINE,
    ...NOTHING,
    file: ends(
      'apiserver --listen 127.0.0.1:0 --kubeconfig GONE/kubeconfig',
      /gone\/kubeconfig.*ENOENT.*; check the path/,
    ),
  },
  apply: { ...records('apply PLAN'), file: ends('apply GONE --config CONFIG', NO_FILE) },
  approve: {
    ...records('approve'),
    namespace: ends('approve object-none -n gone --config CONFIG --kubeconfig ADMIN', /nothing is held/, 3),
    right: ends('approve --config CONFIG --kubeconfig NOBODY', noRight('get', 'configmaps')),
  },
  check: {
    kind: ends('check --kubeconfig KINDLESS', /dnsendpoints\.externaldns\.k8s\.io .*is not installed/, 2),
    namespace: 'it asks about rights in it, which need no namespace',
    right: ends('check --kubeconfig NOBODY', /not ready: .*not granted to these credentials; use the roles/, 2),
    server: ends('check --kubeconfig DOWN', DOWN),
    file: ends('check --config GONE', NO_FILE),
    algorithm: ends('check --config ALGORITHM --kubeconfig ADMIN', ALGORITHM, 5),
    alias: ends('check --config BOMB', BOMB, 5),
  },
  cleanup: {
    ...fleet('cleanup', ''),
    kind: 'a kind that is not there has no objects to clean up',
    right: ends('cleanup --kubeconfig NOBODY', /HTTPProxy, .* cannot be read: .*403 Forbidden.*; grant it in a/),
  },
  'cluster add': {
    ...fleet('cluster add seamark --name member', 'clusters.seamark.io'),
    kind: 'it creates the CRD that it needs',
    namespace: 'it creates the namespace',
    right: ends('cluster add seamark --name member --kubeconfig NOBODY', noRight('list', 'secrets')),
    alias: ends('cluster add seamark --name member --kubeconfig ADMIN --member-kubeconfig BOMB', BOMB, 5),
    file: ends('cluster add seamark --name member --kubeconfig ADMIN --member-kubeconfig GONE', NO_FILE),
  },
  'cluster list': fleet('cluster list', 'clusters.seamark.io'),
  'cluster remove': fleet('cluster remove member', 'clusters.seamark.io'),
  'cluster token': fleet('cluster token member', 'clusters.seamark.io'),
  completion: { ...OFFLINE, ...NOTHING },
  'config view': {
    ...OFFLINE,
    file: ends('config view --config GONE', NO_FILE),
    algorithm: ends('config view --config ALGORITHM', ALGORITHM, 5),
    alias: ends('config view --config BOMB', BOMB, 5),
  },
  'contour-plus': {
    kind: goesOn(`${CONTOUR_PLUS} --kubeconfig KINDLESS`, /httpproxies.projectcontour.io.*not installed/),
    namespace: goesOn(`${CONTOUR_PLUS} --kubeconfig ADMIN`, /namespaces .*gone.* not found/),
    right: goesOn(`${CONTOUR_PLUS} --kubeconfig NOBODY`, /403 Forbidden/),
    server: goesOn(`${CONTOUR_PLUS} --kubeconfig DOWN`, REFUSED),
    file: ends(`${CONTOUR_PLUS} --kubeconfig GONE`, /cannot read kubeconfig \S*gone/),
    algorithm: NO_DNS,
    alias: ends(`${CONTOUR_PLUS} --kubeconfig BOMB`, BOMB_KUBECONFIG),
  },
  convert: {
    ...OFFLINE,
    file: ends('convert -f GONE', NO_FILE),
    algorithm: NO_DNS,
    alias: ends('convert -f BOMB', BOMB, 5),
  },
  crds: { ...OFFLINE, ...NOTHING },
  dig: {
    ...OFFLINE,
    server: ends('dig @127.0.0.1 -p CLOSED +tcp +tries=1 +time=1 a.test', /refused|ECONNREFUSED/i),
    file: ends('dig @127.0.0.1 -k GONE a.test', NO_FILE),
    algorithm: ends('dig @127.0.0.1 -y hmac-none:name:c2VjcmV0 a.test', ALGORITHM, 5),
    alias: NO_INPUT,
  },
  'dns serve': {
    ...OFFLINE,
    file: ends('dns serve --listen 127.0.0.1:0 GONE', NO_FILE),
    algorithm: ends('dns serve --listen 127.0.0.1:0 --key KEY ZONE', ALGORITHM),
    alias: NO_INPUT,
  },
  dnslb: {
    kind: 'it creates the CRDs of its kinds',
    namespace: goesOn('dnslb --kubeconfig ADMIN', /namespaces .*garden.* not found/),
    right: ends('dnslb --kubeconfig NOBODY', /403 Forbidden.*customresourcedefinitions.*; grant it in a/),
    server: ends('dnslb --kubeconfig DOWN', DOWN),
    file: ends('dnslb --kubeconfig GONE', /cannot read kubeconfig \S*gone/),
    algorithm: 'its keys are in Secrets, whose faults are conditions of the DNSProvider',
    alias: ends('dnslb --watches BOMB', /bomb/, 1),
  },
  drain: fleet('drain member', 'clusters.seamark.io'),
  explain: {
    ...fleet('explain a.test', ''),
    kind: finds(
      'explain a.test --config CONFIG --kubeconfig KINDLESS',
      /broken at endpoint[^]* CRDNotInstalled: .*seamark hub init/,
    ),
    namespace: 'a namespace without switches is that of a manager which has not run yet',
    right: ends('explain a.test --kubeconfig NOBODY', /user "nobody" may not list .*; grant it/),
    algorithm: ends('explain a.test --config ALGORITHM --kubeconfig ADMIN', ALGORITHM, 5),
  },
  export: records('export'),
  gateway: {
    kind: goesOn(`${GATEWAY} --kubeconfig KINDLESS`, /httpproxies.projectcontour.io.*not installed/),
    namespace: goesOn(`${GATEWAY} --kubeconfig ADMIN`, /namespaces .*gone.* not found/),
    right: goesOn(`${GATEWAY} --kubeconfig NOBODY`, /403 Forbidden/),
    server: goesOn(`${GATEWAY} --kubeconfig DOWN`, REFUSED),
    file: ends(`${GATEWAY} --kubeconfig GONE`, /cannot read kubeconfig \S*gone/),
    algorithm: NO_DNS,
    alias: ends(`${GATEWAY} --kubeconfig BOMB`, BOMB_KUBECONFIG),
  },
  'gateway bootstrap': { ...OFFLINE, ...NOTHING },
  'gateway translate': {
    ...OFFLINE,
    file: ends('gateway translate -f GONE', NO_FILE),
    algorithm: NO_DNS,
    alias: ends('gateway translate -f BOMB', BOMB, 5),
  },
  'hub init': {
    ...fleet('hub init', ''),
    kind: 'it creates the CRDs',
    namespace: 'it creates the namespace',
    right: ends('hub init --kubeconfig NOBODY', noRight('get', 'namespaces')),
  },
  plan: {
    ...records('plan'),
    kind: ends(
      'plan --config CONFIG --kubeconfig KINDLESS',
      /does not know dnsendpoints\.externaldns\.k8s\.io; create the CRD .* with: seamark hub init/,
    ),
    file: ends('plan -f GONE --config CONFIG --kubeconfig ADMIN', NO_FILE),
    alias: ends('plan -f BOMB --config CONFIG --kubeconfig ADMIN', BOMB, 5),
  },
  playground: {
    ...OFFLINE,
    file: ends('playground --script GONE', NO_FILE),
    algorithm: NO_DNS,
    alias: ends('playground --script BOMB', BOMB, 5),
  },
  'playground bad-release': { ...OFFLINE, ...NOTHING },
  'playground provider': { ...OFFLINE, ...NOTHING },
  'playground reset': { ...OFFLINE, ...NOTHING },
  'playground slow': { ...OFFLINE, ...NOTHING },
  'playground start': { ...OFFLINE, ...NOTHING },
  'playground status': { ...OFFLINE, ...NOTHING },
  'playground stop': { ...OFFLINE, ...NOTHING },
  'playground traffic': { ...OFFLINE, ...NOTHING },
  'provider conformance': records('provider conformance --zone a.test'),
  'provider list': records('provider list'),
  'provider test': records('provider test'),
  'provider webhook': {
    ...OFFLINE,
    right: 'it reads no object',
    file: ends('provider webhook --listen 127.0.0.1:0 --config GONE', NO_FILE),
    algorithm: ends('provider webhook --listen 127.0.0.1:0 --config ALGORITHM', ALGORITHM, 5),
    alias: ends('provider webhook --listen 127.0.0.1:0 --config BOMB', BOMB, 5),
  },
  release: records('release'),
  run: {
    kind: goesOn(`${RUN} --kubeconfig KINDLESS`, /httpproxies.projectcontour.io.*not installed/),
    namespace: goesOn(`${RUN} --kubeconfig ADMIN`, /namespaces .*gone.* not found/),
    right: goesOn(`${RUN} --kubeconfig NOBODY`, /403 Forbidden/),
    server: goesOn(`${RUN} --kubeconfig DOWN`, REFUSED),
    file: ends('run -n gone --config GONE', NO_FILE),
    algorithm: ends('run -n gone --config ALGORITHM --kubeconfig ADMIN', ALGORITHM, 5),
    alias: ends('run -n gone --config BOMB', BOMB, 5),
  },
  shift: fleet('shift a.test --to member', 'globalingresses.seamark.io'),
  transfer: records('transfer --to other --to-cluster c'),
  tree: fleet('tree a.test', 'globalingresses.seamark.io'),
  undo: records('undo'),
  undrain: fleet('undrain member', 'clusters.seamark.io'),
  version: { ...OFFLINE, ...NOTHING },
}
