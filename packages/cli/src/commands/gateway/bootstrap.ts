/** `seamark gateway bootstrap`: the bootstrap configuration of an Envoy that is run by others. */
import { bootstrapOf } from '@seamark/gateway'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addOutputFlag, printValue } from '../../output-form.ts'

interface Flags {
  xdsAddress: string
  xdsPort: string
  xdsServerName?: string
  envoyCafile?: string
  envoyCertFile?: string
  envoyKeyFile?: string
  adminSocket?: string
  output: 'json' | 'yaml'
}

export function buildBootstrap(io: Io): Command {
  const command = new Command('bootstrap')
    .description('print the bootstrap configuration of an Envoy that connects to this gateway')
    .option('--xds-address <address>', 'address of the xDS port', '127.0.0.1')
    .option('--xds-port <port>', 'its port', '8001')
    .option('--xds-server-name <name>', 'name in its certificate; else the address')
    .option('--envoy-cafile <file>', 'authority of the certificate of the xDS port')
    .option('--envoy-cert-file <file>', 'certificate of Envoy; Envoy reads it again when its folder changes')
    .option('--envoy-key-file <file>', 'its private key')
    .option('--admin-socket <file>', 'socket file of the admin interface; else none')
  addOutputFlag(command, ['json', 'yaml'], 'json')
  return command.action((flags: Flags) => {
    const { xdsAddress: host, envoyCafile: caFile, envoyCertFile: certificateFile, envoyKeyFile: keyFile } = flags
    const port = Number(flags.xdsPort)
    if (!Number.isInteger(port) || port < 1 || port > 65_535)
      throw new CommandError(`--xds-port ${flags.xdsPort} is not a port`, EXIT.usage)
    const files = [caFile, certificateFile, keyFile].filter((file) => file !== undefined)
    if (files.length !== 0 && files.length !== 3)
      throw new CommandError('--envoy-cafile, --envoy-cert-file and --envoy-key-file go together', EXIT.usage)
    const tls =
      caFile === undefined || certificateFile === undefined || keyFile === undefined
        ? undefined
        : { caFile, certificateFile, keyFile, serverName: flags.xdsServerName ?? host }
    const bootstrap = bootstrapOf({
      xds: { host, port, ...(tls !== undefined && { tls }) },
      ...(flags.adminSocket !== undefined && { adminSocket: flags.adminSocket }),
    })
    io.stdout.write(printValue(flags.output, bootstrap))
  })
}
