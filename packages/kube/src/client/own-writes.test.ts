import { describe, expect, it } from 'vitest'
import { OwnWrites } from './own-writes.ts'

function tracking() {
  const ownWrites = new OwnWrites()
  ownWrites.track()
  const resumed: string[] = []
  const report = (version: string) => ownWrites.defer('ns/a', version, () => resumed.push(version))
  return { ownWrites, resumed, report }
}

describe('own writes', () => {
  it('defer watch events only while a write of the same object is in flight', () => {
    const { ownWrites, report } = tracking()
    expect(report('4')).toBe(false)
    ownWrites.begin('ns/other')
    expect(report('4')).toBe(false)
    ownWrites.begin('ns/a')
    expect(report('5')).toBe(true)
    ownWrites.end('ns/a', '5')
    expect(report('6')).toBe(false)
  })

  it('drop the event of the version they produced and resume the others in order', () => {
    const { ownWrites, report, resumed } = tracking()
    ownWrites.begin('ns/a')
    for (const version of ['3', '5', '7']) report(version)
    expect(resumed).toEqual([])
    ownWrites.end('ns/a', '5')
    expect(resumed).toEqual(['3', '7'])
  })

  it('resume everything after a write that failed', () => {
    const { ownWrites, report, resumed } = tracking()
    ownWrites.begin('ns/a')
    report('5')
    ownWrites.end('ns/a', undefined)
    expect(resumed).toEqual(['5'])
  })

  it('resume events after the last of several concurrent writes of one object', () => {
    const { ownWrites, report, resumed } = tracking()
    ownWrites.begin('ns/a')
    ownWrites.begin('ns/a')
    for (const version of ['5', '6', '7']) report(version)
    ownWrites.end('ns/a', '6')
    expect(resumed).toEqual([])
    ownWrites.end('ns/a', '5')
    expect(resumed).toEqual(['7'])
  })

  it('are not tracked before track() is called', () => {
    const ownWrites = new OwnWrites()
    ownWrites.begin('ns/a')
    expect(ownWrites.defer('ns/a', '5', () => undefined)).toBe(false)
  })
})
