/** `seamark cleanup`: removes our finalizers, and on request the generated objects, before publish is uninstalled. */
import { cleanUp } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../command.ts'
import { addKubeFlags, type KubeFlags, openCluster } from '../flags/kube-flags.ts'

interface Flags extends KubeFlags {
  children?: boolean
  dryRun?: boolean
}

export function build(io: Io): Command {
  return addKubeFlags(new Command().description('remove finalizers, and on request children, before uninstalling'))
    .option('--children', 'delete the DNSEndpoints, Certificates and delegations that were made as well')
    .option('--dry-run', 'print what would be removed, and remove nothing')
    .action(async (flags: Flags) => {
      const cluster = await openCluster(io, flags)
      const dryRun = flags.dryRun === true
      try {
        const report = await cleanUp(cluster.client, {
          children: flags.children === true,
          dryRun,
          signal: io.signal,
          onStep: (what) => io.stdout.write(`${dryRun ? 'would remove' : 'removing'} ${what}\n`),
        })
        io.stdout.write(
          `${report.finalizers} finalizers, ${report.children} children ${dryRun ? 'would be removed' : 'removed'}\n`,
        )
        const [first] = report.unread
        if (first !== undefined)
          throw new CommandError(
            `not everything was looked at, ${report.unread.map(({ kind }) => kind).join(', ')} cannot be read: ${first.error.message}`,
            EXIT.error,
            { cause: first.error },
          )
      } finally {
        await cluster.close()
      }
    })
}
