/**
 * The user's own kubeconfig: `--kubeconfig`, `KUBECONFIG` lists, `~/.kube/config`, contexts, files, exec plug-ins.
 * It is trusted like code; a kubeconfig from a Secret is loaded by remote-config.ts instead.
 *
 * Flow: read files → merge (first wins) → select context → ClusterConfig with Credentials that reload what can change.
 */
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { systemClock, type Clock } from '../clock.ts'
import type { ClusterConfig } from './cluster-config.ts'
import {
  impersonationHeaders,
  refreshingCredentials,
  staticCredentials,
  type AuthHeaders,
  type Credentials,
  type Impersonation,
  type TlsFields,
} from './credentials.ts'
import { ConfigError, messageOf } from '../errors.ts'
import { EXEC_VERSIONS, runExecPlugin, type ExecPlugin } from './exec-credential.ts'
import { loadInCluster } from './in-cluster.ts'
import {
  booleanField,
  mappingField,
  parseKubeconfig,
  pemField,
  quote,
  selectContext,
  textField,
  textListField,
  type Fields,
  type Kubeconfig,
} from './kubeconfig.ts'
import { findProxy } from './proxy.ts'

export interface ConfigOptions {
  /** A kubeconfig file. @default the files of `KUBECONFIG`, else `~/.kube/config`, else the service account */
  path?: string
  /** @default current-context */
  context?: string
  /** Impersonate a user; replaces the kubeconfig's own impersonation. */
  impersonate?: Impersonation
  env?: Readonly<Record<string, string | undefined>>
  clock?: Clock
}

/** Files are read again after this long, and after a 401. */
const FILE_REFRESH_MS = 60_000

/** Finds the cluster configuration as kubectl does; falls back to the pod's service account. */
export async function loadConfig(options: ConfigOptions = {}): Promise<ClusterConfig> {
  const { env = process.env, clock = systemClock } = options
  const listed = options.path ?? env['KUBECONFIG'] ?? ''
  if (listed === '') {
    const home = join(env['HOME'] ?? homedir(), '.kube', 'config')
    const text = await readFile(home, 'utf8').catch(() => undefined)
    if (text === undefined && env['KUBERNETES_SERVICE_HOST'] !== undefined) return loadInCluster({ env, clock })
    if (text === undefined) {
      throw new ConfigError(
        'NOT_FOUND',
        `no kubeconfig: KUBECONFIG is not set, ${home} is not there, and this is no pod`,
      )
    }
    return configOf(withAbsolutePaths(parseKubeconfig(text), dirname(home)), options)
  }
  const paths = options.path === undefined ? listed.split(delimiter).filter((path) => path !== '') : [options.path]
  const documents: Kubeconfig[] = []
  let missing: unknown
  for (const path of paths) {
    try {
      documents.push(withAbsolutePaths(parseKubeconfig(await readFile(path, 'utf8')), dirname(resolve(path))))
    } catch (error) {
      if (error instanceof ConfigError) throw new ConfigError(error.code, `${path}: ${error.message}`)
      missing ??= error
    }
  }
  if (documents.length === 0) {
    throw new ConfigError('NOT_FOUND', `cannot read kubeconfig ${paths.join(', ')}: ${messageOf(missing)}`)
  }
  return configOf(merge(documents), options)
}

/** The same for kubeconfig text; relative paths in it are relative to the working directory. */
export function configFromText(text: string, options: Omit<ConfigOptions, 'path'> = {}): ClusterConfig {
  return configOf(withAbsolutePaths(parseKubeconfig(text), process.cwd()), options)
}

const PATH_FIELDS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile']

/** Relative paths are relative to their file, so they are made absolute before files are merged. */
function withAbsolutePaths(config: Kubeconfig, folder: string): Kubeconfig {
  const absolute = (path: unknown) =>
    typeof path === 'string' && path !== '' && !isAbsolute(path) ? join(folder, path) : path
  const rewrite = (entries: ReadonlyMap<string, Fields>) =>
    new Map(
      [...entries].map(([name, fields]) => {
        const copy = new Map(fields)
        for (const key of PATH_FIELDS) if (copy.has(key)) copy.set(key, absolute(copy.get(key)))
        const exec = copy.get('exec')
        const command = exec instanceof Map ? exec.get('command') : undefined
        // A bare command is looked up in PATH; one with a slash is a path (client-go's rule).
        if (exec instanceof Map && typeof command === 'string' && command.includes('/')) {
          copy.set('exec', new Map([...exec, ['command', absolute(command)]]))
        }
        return [name, copy]
      }),
    )
  return { ...config, clusters: rewrite(config.clusters), users: rewrite(config.users) }
}

function merge(documents: readonly Kubeconfig[]): Kubeconfig {
  const firstWins = (pick: (config: Kubeconfig) => ReadonlyMap<string, Fields>) =>
    new Map(documents.toReversed().flatMap((config) => [...pick(config)]))
  return {
    fields: new Map(),
    currentContext: documents.find((config) => config.currentContext !== undefined)?.currentContext,
    clusters: firstWins((config) => config.clusters),
    users: firstWins((config) => config.users),
    contexts: firstWins((config) => config.contexts),
  }
}

function configOf(config: Kubeconfig, options: ConfigOptions): ClusterConfig {
  const { clock = systemClock, env = process.env } = options
  const { name, context, cluster, user } = selectContext(config, options.context)
  const where = `the cluster of context ${quote(name)}`
  const server = readServer(cluster, where)
  const proxyUrl = textField(cluster, 'proxy-url', where) ?? findProxy(server, env)
  return {
    name,
    server,
    namespace: textField(context, 'namespace', `context ${quote(name)}`) ?? 'default',
    credentials: credentialsOf(cluster, user, name, options, clock),
    ...(proxyUrl !== undefined && { proxyUrl }),
  }
}

function readServer(cluster: Fields, where: string): string {
  const server = textField(cluster, 'server', where)
  if (server === undefined) throw new ConfigError('NO_SERVER', `kubeconfig: ${where} has no server`)
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new ConfigError('BAD_SERVER', `kubeconfig: server of ${where} is not an http(s) URL`)
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/** A credential field: inline data wins over a file, as in client-go. */
type Pem = { readonly text: string } | { readonly path: string } | undefined

function readPem(fields: Fields, key: string, where: string): Pem {
  const text = pemField(fields, `${key}-data`, where)
  if (text !== undefined) return { text }
  const path = textField(fields, key, where)
  return path === undefined ? undefined : { path }
}

async function resolvePem(pem: Pem): Promise<string | undefined> {
  if (pem === undefined) return undefined
  return 'text' in pem ? pem.text : readFile(pem.path, 'utf8')
}

function credentialsOf(cluster: Fields, user: Fields, name: string, options: ConfigOptions, clock: Clock): Credentials {
  const where = `the cluster of context ${quote(name)}`
  const who = `the user of context ${quote(name)}`
  if (mappingField(user, 'auth-provider', who) !== undefined) {
    throw new ConfigError(
      'AUTH_PROVIDER',
      `kubeconfig: ${who} uses auth-provider, which Kubernetes removed; use an exec plug-in`,
    )
  }
  const ca = readPem(cluster, 'certificate-authority', where)
  const cert = readPem(user, 'client-certificate', who)
  const key = readPem(user, 'client-key', who)
  if ((cert === undefined) !== (key === undefined)) {
    throw new ConfigError('BAD_DATA', `kubeconfig: ${who} has a client certificate or key without the other`)
  }
  const insecure = booleanField(cluster, 'insecure-skip-tls-verify', where)
  const serverName = textField(cluster, 'tls-server-name', where)
  const fixed: TlsFields = { ...(insecure && { insecure }), ...(serverName !== undefined && { serverName }) }
  const as = impersonationHeaders(options.impersonate ?? readImpersonation(user, who))
  const exec = readExec(user, cluster, who)
  const token = textField(user, 'token', who)
  const tokenFile = textField(user, 'tokenFile', who)
  const basic = readBasic(user, who)

  const loadTls = async (): Promise<TlsFields> => {
    const [caText, certText, keyText] = await Promise.all([resolvePem(ca), resolvePem(cert), resolvePem(key)])
    return {
      ...fixed,
      ...(caText !== undefined && { ca: caText }),
      ...(certText !== undefined && keyText !== undefined && { cert: certText, key: keyText }),
    }
  }
  if (exec !== undefined) {
    return refreshingCredentials(async () => {
      const loaded = await runExecPlugin(exec, await loadTls(), { clock })
      return { ...loaded, headers: { ...loaded.headers, ...as } }
    }, clock)
  }
  const usesFiles = tokenFile !== undefined || [ca, cert, key].some((pem) => pem !== undefined && 'path' in pem)
  if (!usesFiles) {
    const inline = (pem: Pem) => (pem !== undefined && 'text' in pem ? pem.text : undefined)
    const [caText, certText, keyText] = [inline(ca), inline(cert), inline(key)]
    return staticCredentials(
      { ...authorization(token, basic), ...as },
      {
        ...fixed,
        ...(caText !== undefined && { ca: caText }),
        ...(certText !== undefined && keyText !== undefined && { cert: certText, key: keyText }),
      },
    )
  }
  return refreshingCredentials(async () => {
    const tls = await readingFiles(who, loadTls)
    // As in client-go: a tokenFile takes precedence over a token, because it is kept up to date.
    const read =
      tokenFile === undefined ? token : (await readingFiles(who, async () => readFile(tokenFile, 'utf8'))).trim()
    return { tls, headers: { ...authorization(read, basic), ...as }, refreshInMs: FILE_REFRESH_MS }
  }, clock)
}

async function readingFiles<T>(who: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    throw new ConfigError('BAD_DATA', `kubeconfig: a credential file of ${who} cannot be read: ${messageOf(cause)}`, {
      cause,
    })
  }
}

function authorization(token: string | undefined, basic: string | undefined): AuthHeaders {
  if (token !== undefined) return { authorization: `Bearer ${token}` }
  return basic === undefined ? {} : { authorization: `Basic ${basic}` }
}

function readBasic(user: Fields, who: string): string | undefined {
  const name = textField(user, 'username', who)
  const password = textField(user, 'password', who)
  return name === undefined ? undefined : Buffer.from(`${name}:${password ?? ''}`).toString('base64')
}

function readImpersonation(user: Fields, who: string): Impersonation | undefined {
  const name = textField(user, 'as', who)
  if (name === undefined) return undefined
  const groups = textListField(user, 'as-groups', who)
  const uid = textField(user, 'as-uid', who)
  const extra = mappingField(user, 'as-user-extra', who)
  const read = new Map(
    [...(extra?.keys() ?? [])].map((key) => [String(key), textListField(extra ?? new Map(), String(key), who) ?? []]),
  )
  return {
    user: name,
    ...(groups !== undefined && { groups }),
    ...(uid !== undefined && { uid }),
    ...(read.size > 0 && { extra: read }),
  }
}

function readExec(user: Fields, cluster: Fields, who: string): ExecPlugin | undefined {
  const exec = mappingField(user, 'exec', who)
  if (exec === undefined) return undefined
  const command = textField(exec, 'command', `exec of ${who}`)
  const apiVersion = textField(exec, 'apiVersion', `exec of ${who}`)
  if (command === undefined) throw new ConfigError('EXEC', `kubeconfig: exec of ${who} has no command`)
  if (apiVersion === undefined || !EXEC_VERSIONS.includes(apiVersion)) {
    throw new ConfigError(
      'EXEC',
      `kubeconfig: exec of ${who} has an apiVersion that is none of ${EXEC_VERSIONS.join(', ')}`,
    )
  }
  const mode = textField(exec, 'interactiveMode', `exec of ${who}`) ?? 'IfAvailable'
  if (mode !== 'Never' && mode !== 'IfAvailable' && mode !== 'Always') {
    throw new ConfigError('EXEC', `kubeconfig: interactiveMode of ${who} must be Never, IfAvailable or Always`)
  }
  const installHint = textField(exec, 'installHint', `exec of ${who}`)
  return {
    apiVersion,
    command,
    args: textListField(exec, 'args', `exec of ${who}`) ?? [],
    env: readEnv(exec, who),
    interactiveMode: mode,
    ...(installHint !== undefined && { installHint }),
    ...(booleanField(exec, 'provideClusterInfo', who) ? { cluster: clusterInfo(cluster) } : {}),
  }
}

function readEnv(exec: Fields, who: string): { name: string; value: string }[] {
  const list = exec.get('env')
  if (list === undefined || list === null) return []
  if (!Array.isArray(list)) throw new ConfigError('WRONG_TYPE', `kubeconfig: env of exec of ${who} must be a list`)
  return list.map((entry: unknown) => {
    const name = entry instanceof Map ? textField(entry, 'name', `env of exec of ${who}`) : undefined
    if (!(entry instanceof Map) || name === undefined) {
      throw new ConfigError('WRONG_TYPE', `kubeconfig: env of exec of ${who} must have names and values`)
    }
    return { name, value: textField(entry, 'value', `env of exec of ${who}`) ?? '' }
  })
}

/** The cluster part of KUBERNETES_EXEC_INFO. */
function clusterInfo(cluster: Fields): Record<string, unknown> {
  const info: Record<string, unknown> = {}
  for (const key of [
    'server',
    'certificate-authority-data',
    'tls-server-name',
    'insecure-skip-tls-verify',
    'proxy-url',
  ]) {
    const value = cluster.get(key)
    if (value !== undefined && value !== null) info[key] = value
  }
  return info
}
