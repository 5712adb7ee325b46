import { addressGuard } from '@seamark/kube'
import { expect, it } from 'vitest'
import { guardedLookup, type Resolver } from './guarded-lookup.ts'

const resolving = (...addresses: string[]) =>
  ((_name: string, _options: object, done: (error: null, found: object[]) => void) =>
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )) as unknown as Resolver

async function lookUp(resolver: Resolver, all: boolean): Promise<unknown> {
  return await new Promise((resolve, reject) => {
    guardedLookup(addressGuard(), resolver)('name.test', { all }, (error, found) => {
      if (error === null) resolve(found)
      else reject(error)
    })
  })
}

it('connects only to addresses that the guard allows, whatever a name resolves to', async () => {
  expect(await lookUp(resolving('169.254.169.254', '192.0.2.1'), false)).toBe('192.0.2.1')
  expect(await lookUp(resolving('127.0.0.1', '192.0.2.1', '::1'), true)).toEqual([{ address: '192.0.2.1', family: 4 }])
  await expect(lookUp(resolving('127.0.0.1', '::ffff:127.0.0.1'), false)).rejects.toThrow(/must not be connected to/)
  await expect(lookUp(resolving(), true)).rejects.toThrow(/no address/)
})
