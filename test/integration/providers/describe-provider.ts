/** Runs the conformance kit as vitest tests, one per case. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CONFORMANCE, type ConformanceSubject } from '@seamark/operator'

export interface Subject extends Omit<ConformanceSubject, 'signal'> {
  close(): Promise<void>
}

export function describeProvider(name: string, isAvailable: boolean, start: () => Promise<Subject>): void {
  describe.skipIf(!isAvailable)(`provider conformance: ${name}`, () => {
    let subject: Subject
    beforeAll(async () => {
      subject = await start()
    })
    afterAll(async () => subject.close())
    it.each(CONFORMANCE.map((item) => [item.title, item] as const))('%s', async (_title, item) => {
      await expect(item.run({ ...subject, signal: AbortSignal.timeout(20_000) })).resolves.toBeUndefined()
    })
    it('leaves nothing behind', async () => {
      const left = await subject.provider.read(subject.zone, 'all', AbortSignal.timeout(20_000))
      expect(left.filter((set) => set.name.includes('conformance-'))).toEqual([])
    })
  })
}
