/**
 * Selects the proxy from the environment, by the rules of Go's net/http: HTTPS_PROXY or HTTP_PROXY by scheme, unless
 * NO_PROXY names the host, a parent domain, an address or a CIDR range. Loopback is never proxied.
 */
import { BlockList, isIP, isIPv6 } from 'node:net'

export function findProxy(server: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const url = new URL(server)
  const read = (name: string) => env[name] ?? env[name.toLowerCase()]
  const proxy = url.protocol === 'https:' ? read('HTTPS_PROXY') : read('HTTP_PROXY')
  if (proxy === undefined || proxy === '') return undefined
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (host === 'localhost' || isLoopback(host)) return undefined
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  const isExcepted = (read('NO_PROXY') ?? '').split(',').some((rule) => matches(rule.trim().toLowerCase(), host, port))
  if (isExcepted) return undefined
  return proxy.includes('://') ? proxy : `http://${proxy}`
}

function isLoopback(host: string): boolean {
  return host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

function matches(rule: string, host: string, port: string): boolean {
  if (rule === '') return false
  if (rule === '*') return true
  if (isIP(host) !== 0 && rule.includes('/')) return isInRange(rule, host)
  const colon = isIP(rule) === 6 ? -1 : rule.lastIndexOf(':')
  const name = colon < 0 ? rule : rule.slice(0, colon)
  if (colon >= 0 && rule.slice(colon + 1) !== port) return false
  if (name.startsWith('*.')) return host.endsWith(name.slice(1))
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`)
}

function isInRange(range: string, host: string): boolean {
  const [address = '', bits = ''] = range.split('/')
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  if (isIP(address) === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 'ipv6' ? 128 : 32)) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits), family)
  return list.check(host, isIPv6(host) ? 'ipv6' : 'ipv4')
}
