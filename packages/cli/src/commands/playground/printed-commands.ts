/** The commands that the playground prints: each works as it stands, in a checkout. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { SHOP } from './world/objects.ts'
import type { World } from './world/world.ts'

const PROGRAM = 'bin/seamark'

type Paths = Pick<World, 'dnsAddress' | 'kubeconfigPath' | 'configPath'>

/** What shows the state of one host, in a terminal without any variable. */
export function hostCommand({ dnsAddress, kubeconfigPath, configPath }: Paths, host: string): string[] {
  const { address, port } = dnsAddress
  return [
    `${PROGRAM} dig @${address} -p ${port} ${host} +short`,
    `${PROGRAM} explain ${host} --kubeconfig ${kubeconfigPath} --config ${configPath}`,
  ]
}

/** For a terminal with KUBECONFIG. */
export function tryCommands({ configPath }: Paths, path: string | undefined): string[] {
  const hosts = hasProgram('kubectl', path) ? 'kubectl get globalingresses -A' : `${PROGRAM} status`
  return [
    described(hosts, 'hosts on several clusters, and where each is'),
    described(`${PROGRAM} tree ${SHOP} --config ${configPath}`, 'one of them: root, leaves, addresses'),
    described(`${PROGRAM} explain ${SHOP} --config ${configPath}`, 'why it is answered as it is'),
    described(`${PROGRAM} drain us1 --wait`, 'no request fails'),
    described(`${PROGRAM} playground stop ap1`, 'an outage: the answer follows'),
    described(`${PROGRAM} playground bad-release`, 'most sources are deleted: held'),
    described(`${PROGRAM} approve`, 'what is held, and what lets it pass'),
    described(`${PROGRAM} playground reset`, 'everything as at first'),
  ]
}

const WIDTH = 40

function described(command: string, what: string): string {
  return `${command.padEnd(WIDTH)}  # ${what}`
}

function hasProgram(name: string, path = ''): boolean {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return folder !== ''
    } catch {
      return false
    }
  })
}
