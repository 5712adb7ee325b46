/**
 * What a failed command says, in one sentence: what failed, and what to do about it, by the class of the error. All commands let
 * their errors pass and end here; only what a command alone can know is a CommandError.
 *
 * Guarantee: no stack; `--debug` prints the stacks of the error and of its causes as well.
 */
import { DnsError } from '@seamark/dns'
import {
  ApiError,
  Conflict,
  DecodeError,
  Forbidden,
  KubeError,
  messageOf,
  NotFound,
  ServerTimeout,
  ServiceUnavailable,
  TooManyRequests,
  TransportError,
  Unauthorized,
} from '@seamark/kube'
import { CommandError, EXIT, type ExitCode } from './command.ts'
import { type Resource, resourceOf, rightOf, whatOf } from './request-resource.ts'

export interface Fault {
  /** Without a full stop. */
  readonly says: string
  readonly code: ExitCode
}

/** Expected errors of the other packages: by name, because loading their packages would delay `seamark dig`. */
const EXPECTED = new Set(['RecordsError', 'ProviderError', 'ConformanceError', 'DataDirectoryError'])

export function describeFault(error: unknown): Fault {
  if (error instanceof CommandError) {
    const advice = adviceOf(error.cause)
    // Several lines when the configuration has several faults.
    return { says: advice === undefined ? error.message : `${error.message}; ${advice}`, code: error.code }
  }
  const advice = adviceOf(error)
  const sentence = sentenceOf(error)
  if (sentence === undefined)
    return {
      says: oneLine(`unexpected: ${messageOf(error)}; this is a defect of Seamark: --debug prints where it is`),
      code: EXIT.error,
    }
  return { says: oneLine(advice === undefined ? sentence : `${sentence}; ${advice}`), code: codeOf(error) }
}

/** Every stack of the chain of causes, for `--debug`. */
export function stacksOf(error: unknown): string {
  const stacks: string[] = []
  for (let each = error; each instanceof Error && stacks.length < 10; each = each.cause)
    stacks.push(each.stack ?? each.message)
  return stacks.join('\ncaused by: ')
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, ' ')
}

function codeOf(error: unknown): ExitCode {
  if (error instanceof TransportError && error.code === 'DEADLINE') return EXIT.timeout
  if (error instanceof ServerTimeout) return EXIT.timeout
  if (error instanceof DnsError) {
    if (error.code === 'TIMEOUT') return EXIT.timeout
    return error.code.startsWith('BAD_') ? EXIT.usage : EXIT.error
  }
  return EXIT.error
}

/** Undefined for an error that nobody expects. */
function sentenceOf(error: unknown): string | undefined {
  if (error instanceof ApiError) return sentenceOfResponse(error)
  if (error instanceof KubeError || error instanceof DnsError) return error.message
  if (error instanceof Error && EXPECTED.has(error.name)) return error.message
  if (isSystemError(error))
    return error.path === undefined || error.syscall === undefined
      ? error.message
      : `cannot ${error.syscall === 'open' ? 'read' : error.syscall} ${error.path}: ${error.message}`
  if (isYamlError(error)) return error.message
  return undefined
}

function sentenceOfResponse(error: ApiError): string {
  const where = error.host === '' ? 'the API server' : `the API server ${error.host}`
  const resource = resourceOf(error.request)
  if (error instanceof NotFound && resource !== undefined) {
    const namespace = missingNamespace(error)
    if (namespace !== undefined) return `${where} has no namespace ${namespace}`
    if (isKindMissing(error)) return `${where} does not know ${whatOf(resource)}`
  }
  if (error instanceof Forbidden) {
    const { verb, resource: name, user, place } = rightOf(error) ?? {}
    if (verb !== undefined) return `${where}: ${user} may not ${verb} ${name} ${place}`
  }
  if (error instanceof Unauthorized) return `${where} does not accept the credentials of the kubeconfig`
  return error.host === '' ? error.message : `${error.host}: ${error.message}`
}

const NO_API_SERVER =
  'something else than an API server answers there, such as a proxy that asks for a login: correct the server of the kubeconfig'

function adviceOf(error: unknown): string | undefined {
  if (error instanceof ApiError) return adviceOnResponse(error)
  if (error instanceof DecodeError) return NO_API_SERVER
  if (error instanceof TransportError) return adviceOnConnection(error)
  if (error instanceof KubeError && error.code === 'NOT_FOUND')
    return 'name a kubeconfig with --kubeconfig or $KUBECONFIG'
  if (isSystemError(error)) return adviceOnSystemError(error)
  if (isYamlError(error)) return 'correct the file; anchors and aliases are not expanded beyond a small number'
  return undefined
}

function adviceOnResponse(error: ApiError): string | undefined {
  const resource = resourceOf(error.request)
  if (error instanceof NotFound && resource !== undefined) {
    const namespace = missingNamespace(error)
    if (namespace !== undefined)
      return `create it with: kubectl create namespace ${namespace}, or name another one with --namespace`
    if (isKindMissing(error)) return adviceOnMissingKind(resource)
    return undefined
  }
  if (error instanceof Forbidden) {
    const right = rightOf(error)
    if (right === undefined) return undefined
    return `grant it in a ${right.isNamespaced ? 'Role or ClusterRole' : 'ClusterRole'} that is bound to this user: ${JSON.stringify(right.rule)}`
  }
  if (error instanceof Unauthorized)
    return 'renew its token or certificate, or choose another user with --kubeconfig or --context'
  if (error instanceof Conflict) return 'somebody else changed it at the same time: run the command again'
  if (error.httpStatus >= 300 && error.httpStatus < 400) return NO_API_SERVER
  if (error instanceof TooManyRequests || error instanceof ServiceUnavailable || error instanceof ServerTimeout)
    return 'the API server is overloaded or starts: run the command again later'
  return undefined
}

const OUR_GROUPS = ['seamark.io', 'loadbalancer.gardener.cloud']
const INSTALLERS: Readonly<Record<string, string>> = {
  'cert-manager.io': 'cert-manager',
  'projectcontour.io': 'Contour',
  'contour.heptio.com': 'Contour',
  'gateway.networking.k8s.io': 'the Gateway API',
  'route.openshift.io': 'OpenShift',
}

function adviceOnMissingKind({ group, plural }: Resource): string {
  if (OUR_GROUPS.includes(group)) return 'apply the CRDs: seamark crds | kubectl apply -f -'
  const crd = `${plural}.${group}`
  if (group === '') return 'check that the kubeconfig names a Kubernetes API server'
  // hub init has a CRD of it, for hubs without ExternalDNS.
  if (group === 'externaldns.k8s.io') return `create the CRD ${crd} with: seamark hub init; or install ExternalDNS`
  const installer = INSTALLERS[group]
  return installer === undefined
    ? `apply the CRD ${crd}`
    : `apply the CRD ${crd} of ${installer}: kubectl apply -f FILE`
}

/** A missing object has its name in the Status; the path of an unknown kind is answered without. */
function isKindMissing({ status }: ApiError): boolean {
  return (status.details?.name ?? '') === ''
}

/** The namespace of what was to be created. */
function missingNamespace({ status, request }: ApiError): string | undefined {
  const { kind, name } = status.details ?? {}
  if (kind !== 'namespaces' || name === undefined || name === '') return undefined
  return request.endsWith(`/namespaces/${name}`) ? undefined : name
}

function adviceOnConnection(error: TransportError): string | undefined {
  if (error.code === 'DEADLINE') return 'check the network, and run the command again'
  if (error.code !== 'CONNECT') return 'run the command again'
  const code = systemCodeOf(error)
  if (code.includes('CERT') || code.includes('TLS') || code.includes('SSL') || code.includes('VERIFY'))
    return 'correct certificate-authority-data, or the name in the server, of the kubeconfig'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'correct the name in the server of the kubeconfig'
  return 'start the API server, or choose another one with --kubeconfig or --context'
}

type SystemError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number; readonly path?: string }

function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && typeof (error as SystemError).syscall === 'string'
}

function adviceOnSystemError({ code, path, address, port }: SystemError): string | undefined {
  const at = [address, port].filter((part) => part !== undefined).join(':')
  switch (code) {
    case 'ENOENT':
      return `check the path ${path ?? ''}; a relative one begins at ${process.cwd()}`
    case 'EACCES':
    case 'EPERM':
      return path === undefined
        ? 'choose a port above 1023, or give the process the right to use this one'
        : 'give this user the right to use the file'
    case 'EISDIR':
      return 'name a file, not a folder'
    case 'ENOTDIR':
      return 'name a folder, not a file'
    case 'EADDRINUSE':
      return `stop the process that listens on ${at}, or choose another port`
    case 'EADDRNOTAVAIL':
      return `choose an address of this machine; ${at} is none`
    case 'ECONNREFUSED':
      return `start the server at ${at}, or correct its address`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'correct the name of the server'
    case undefined:
    default:
      return undefined
  }
}

/** The code of the operating system or of OpenSSL that is the cause of a failed connection. */
function systemCodeOf(error: unknown): string {
  for (let each = error, depth = 0; each instanceof Error && depth < 10; each = each.cause, depth++) {
    const { code, errors } = each as SystemError & { errors?: readonly unknown[] }
    if (typeof code === 'string' && !(each instanceof KubeError)) return code
    // A name with several addresses fails with one error for each.
    if (errors !== undefined && errors.length > 0) return systemCodeOf(errors[0])
  }
  return ''
}

/** The parser throws a ReferenceError for what expands beyond its limit. */
function isYamlError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  return error.name.startsWith('YAML') || (error instanceof ReferenceError && /alias/i.test(error.message))
}
