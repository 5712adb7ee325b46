import { expect, it } from 'vitest'
import { findHostFault } from './host-name.ts'

it.each(['*shop.x', '*.*.x', 'a.*.x', 'shop*.x', '**.x', '*', '.x', 'a..x', '-a.x', 'a_b.x', 'shop.x.'])(
  '%s is no host',
  (host) => {
    expect(findHostFault(host)).toBeDefined()
  },
)

it.each(['*.x', 'shop.x', '*.shop.example.com', 'xn--bcher-kva.example'])('%s is a host', (host) => {
  expect(findHostFault(host)).toBeUndefined()
})
