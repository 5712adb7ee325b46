import { addressGuard, type EndpointSlice } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import { endpointsOf, EndpointTable } from './endpoints.ts'

function slice(fields: Partial<EndpointSlice>): EndpointSlice {
  return {
    metadata: { namespace: 'a', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    ...fields,
  }
}

const addresses = (...all: string[]) => all.map((each) => ({ addresses: [each] }))

describe('endpointsOf', () => {
  it('takes ready TCP endpoints of the named port, once, sorted', () => {
    const endpoints = [
      { addresses: ['10.0.0.2', '10.0.0.9'] },
      { addresses: ['10.0.0.1'], conditions: { ready: true } },
      { addresses: ['10.0.0.3'], conditions: { ready: false } },
    ]
    const udp = slice({ endpoints: addresses('10.0.0.8'), ports: [{ name: 'http', port: 1, protocol: 'UDP' }] })
    expect(endpointsOf([slice({ endpoints }), slice({ endpoints: addresses('10.0.0.1') }), udp], 'http')).toEqual([
      { host: '10.0.0.1', port: 8080 },
      { host: '10.0.0.2', port: 8080 },
    ])
    expect(endpointsOf([slice({ endpoints })], 'admin')).toEqual([])
  })

  it('reads null lists, as a Go server writes empty ones', () => {
    expect(endpointsOf([slice({ endpoints: null, ports: null } as never)], 'http')).toEqual([])
  })

  it('drops addresses that no pod can have', () => {
    const endpoints = addresses('127.0.0.1', '169.254.169.254', '0.0.0.0', '10.0.0.1')
    expect(endpointsOf([slice({ endpoints })], 'http').map(({ host }) => host)).toEqual(['10.0.0.1'])
    const local = [slice({ addressType: 'IPv6', endpoints: addresses('::1', 'fe80::1', '2001:db8::1') })]
    expect(endpointsOf(local, 'http').map(({ host }) => host)).toEqual(['2001:db8::1'])
  })
})

describe('EndpointTable', () => {
  it('reads new names, forgets others, and reports what a refresh changed', () => {
    const table = new EndpointTable(addressGuard())
    table.setNames(['a/web/http'], () => [slice({ endpoints: addresses('10.0.0.1') })])
    expect(table.get('a/web/http')).toEqual([{ host: '10.0.0.1', port: 8080 }])
    expect(table.refresh('a/web', [slice({ endpoints: addresses('10.0.0.1') })])).toEqual([])
    expect(table.refresh('a/web', [slice({ endpoints: addresses('10.0.0.2') })])).toEqual(['a/web/http'])
    expect(table.refresh('a/other', [slice({ endpoints: addresses('10.0.0.2') })])).toEqual([])
    table.setNames([], () => [])
    expect(table.get('a/web/http')).toEqual([])
  })
})
