/** The `dashboard` section of the manager's configuration: where the page is served, and to whom. */
import { isIP } from 'node:net'
import { addressOctets, isLoopback } from '@seamark/dns'
import { z } from 'zod'

const HOST = /^[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?$/
const SERVER = /^(?:\[[0-9a-fA-F:.]+\]|[0-9.]+)(?::\d{1,5})?$/

export const DashboardConfig = z
  .strictObject({
    address: z
      .string()
      .default('127.0.0.1:8182')
      .describe(
        'HOST:PORT of the page; 0 serves none. On loopback it needs no token, and kubectl port-forward reaches it; elsewhere it is served over TLS only, and asks for a token',
      ),
    certFile: z
      .string()
      .default('')
      .describe(
        'certificate of the page, PEM; read again when it changes. Needed unless dashboard.address is loopback',
      ),
    keyFile: z.string().default('').describe('private key of dashboard.certFile, PEM'),
    requireToken: z
      .boolean()
      .default(false)
      .describe('ask for a token on loopback, too: where others share the machine'),
    hosts: z
      .array(z.string().regex(HOST, { error: 'is no host name; a port is not part of it' }))
      .default([])
      .describe(
        'names by which browsers reach the page, beside localhost and IP addresses; other Host headers are refused',
      ),
    resolvers: z
      .array(z.string().regex(SERVER, { error: 'is not ADDRESS or ADDRESS:PORT' }))
      .max(8)
      .default([])
      .describe(
        'resolvers, ADDRESS or ADDRESS:PORT, whose answers the page of a host compares with the authoritative ones',
      ),
  })
  .superRefine(({ address, certFile, keyFile }, context) => {
    const hasPair = certFile !== '' && keyFile !== ''
    if ((certFile === '') !== (keyFile === ''))
      context.addIssue({
        code: 'custom',
        path: ['certFile'],
        message: 'dashboard.certFile and dashboard.keyFile belong together',
      })
    else if (!hasPair && servesPage(address) && !isLoopbackAddress(address))
      context.addIssue({
        code: 'custom',
        path: ['address'],
        message: `${address} is reached by others than this machine: the page is served there over TLS only; set dashboard.certFile and dashboard.keyFile, or listen on 127.0.0.1`,
      })
  })

export type DashboardConfig = z.output<typeof DashboardConfig>

export function servesPage(address: string): boolean {
  return address !== '' && address !== '0'
}

function isLoopbackAddress(address: string): boolean {
  const host = address.replace(/:\d+$/, '').replaceAll(/^\[|\]$/g, '')
  return host === 'localhost' || (isIP(host) !== 0 && isLoopback(addressOctets(host)))
}
