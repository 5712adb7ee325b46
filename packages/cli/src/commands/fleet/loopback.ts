/** Whether an API server is on this machine: its manager takes such members with the setting `allowLoopback` only. */
import { addressGuard } from '@seamark/kube'
import { isIP } from 'node:net'

const isAnywhere = addressGuard({ allowLoopback: true })
const isElsewhere = addressGuard()

export function isLoopbackServer(server: string): boolean {
  const host = new URL(server).hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '')
  if (isIP(host) === 0) return host === 'localhost' || host.endsWith('.localhost')
  return isElsewhere(host) !== undefined && isAnywhere(host) === undefined
}
