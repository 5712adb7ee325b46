/** `seamark crds`: prints the CRDs of Seamark's own kinds. */
import { fleetCrds, loadBalancerCrds } from '@seamark/operator'
import { Command } from 'commander'
import { stringify } from 'yaml'
import type { Io } from '../command.ts'

export function build(io: Io): Command {
  return new Command().description("print the CRDs of Seamark's own kinds, for kubectl apply -f -").action(() => {
    for (const definition of [...fleetCrds(), ...loadBalancerCrds()]) io.stdout.write(`---\n${stringify(definition)}`)
  })
}
