/** The member clusters of a fleet on this machine, and how a hub knows them. */
import { type Client, IngressClass, Namespace, Secret } from '@seamark/kube'
import { Cluster, fleetCrds, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { CommandError, EXIT } from '../../../command.ts'
import { isTaken } from './ports.ts'
import type { LocalCluster } from './local-cluster.ts'

export const MANAGER_NAMESPACE = 'seamark'
/** Another process may have the port on one of the addresses. */
const PORT_TRIES = 5

/** The kinds of a hub. */
export function hubDefinitions(): readonly object[] {
  return [...fleetCrds(), ...loadBalancerCrds(), ...playgroundCrds()]
}

/**
 * Every gateway has an address of its own and the same port, because an A record has no port.
 *
 * @param port taken where it is free on every address; 0: any
 */
export async function startMembers(
  names: readonly string[],
  start: (name: string, address: string, port: number) => Promise<LocalCluster>,
  port = 0,
): Promise<LocalCluster[]> {
  for (let tries = 1; ; tries++) {
    const members: LocalCluster[] = []
    try {
      for (const [index, name] of names.entries())
        members.push(await start(name, `127.0.0.${index + 1}`, members[0]?.port ?? (tries === 1 ? port : 0)))
      return members
    } catch (error) {
      await Promise.all(members.map(async (member) => member.close()))
      const { code } = error as { code?: string }
      if (code === 'EADDRNOTAVAIL')
        throw new CommandError(
          'the fleet needs the addresses 127.0.0.1, 127.0.0.2, … on the loopback interface; on macOS: sudo ifconfig lo0 alias 127.0.0.2',
          EXIT.error,
          { cause: error },
        )
      if (!isTaken(error) || tries === PORT_TRIES) throw error
    }
  }
}

/** What `seamark hub init` and `seamark cluster add` write. A member that is known gets its present address. */
export async function registerMembers(client: Client, members: Iterable<LocalCluster>): Promise<void> {
  await client.apply(Namespace, { metadata: { name: MANAGER_NAMESPACE } })
  await client.apply(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
  for (const { name, kubeconfig } of members) {
    const metadata = { namespace: MANAGER_NAMESPACE, name, labels: { 'seamark.io/cluster': name } }
    await client.apply(Secret, { metadata, data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') } })
    if ((await client.find(Cluster, name)) === undefined)
      await client.create(Cluster, { metadata: { name }, spec: {} } as Cluster)
  }
}
