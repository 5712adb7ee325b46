/** `seamark crds`: prints the CRDs of Seamark's own kinds, or small ones of those of others. */
import { fleetCrds, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { Command } from 'commander'
import { stringify } from 'yaml'
import type { Io } from '../command.ts'

export function build(io: Io): Command {
  return new Command()
    .description("print the CRDs of Seamark's own kinds, for kubectl apply -f -")
    .option(
      '--others',
      'instead small ones of the kinds of others (HTTPProxy, DNSEndpoint, …), for a cluster to try things in',
    )
    .action(({ others = false }: { others?: boolean }) => {
      const definitions = others ? playgroundCrds() : [...fleetCrds(), ...loadBalancerCrds()]
      for (const definition of definitions) io.stdout.write(`---\n${stringify(definition)}`)
    })
}
