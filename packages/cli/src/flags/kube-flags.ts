/** kubectl's flags for the cluster to talk to, the same on every command. */
import { type Cluster, type ClusterConfig, connect, type ConnectOptions, loadConfig } from '@seamark/kube'
import type { Command } from 'commander'
import type { Io } from '../command.ts'

export interface KubeFlags {
  kubeconfig?: string
  context?: string
}

export function addKubeFlags(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'kubeconfig; else $KUBECONFIG, ~/.kube/config, the service account')
    .option('--context <name>', 'context of the kubeconfig')
}

export async function openCluster(io: Io, flags: KubeFlags, options: ConnectOptions = {}): Promise<Cluster> {
  return connect(await readKubeConfig(io, flags), options)
}

/** Which API server the flags and the environment name. */
export async function readKubeConfig(io: Io, flags: KubeFlags): Promise<ClusterConfig> {
  return loadConfig({
    env: io.env,
    ...(flags.kubeconfig !== undefined && { path: flags.kubeconfig }),
    ...(flags.context !== undefined && { context: flags.context }),
  })
}

/** The namespace of the manager, for commands that a person types; a manager has no such default. */
export const DEFAULT_NAMESPACE = 'seamark'

/** The namespace of the manager itself: a flag or setting, the pod's own namespace, else undefined. */
export async function ownNamespace(io: Io, given: string | undefined): Promise<string | undefined> {
  if (given !== undefined && given !== '') return given
  if (io.env['POD_NAMESPACE'] !== undefined && io.env['POD_NAMESPACE'] !== '') return io.env['POD_NAMESPACE']
  const { readFile } = await import('node:fs/promises')
  const text = await readFile('/var/run/secrets/kubernetes.io/serviceaccount/namespace', 'utf8').catch(() => '')
  return text.trim() === '' ? undefined : text.trim()
}
