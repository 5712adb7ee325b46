/** What a DNS server on this machine answers. */
import { createDnsClient, groupRecords } from '@seamark/dns'
import { eventually, LIMIT_MS } from './life.ts'

/** Resolves when the A records of the name are these; without a target, when there are none. */
export async function answers(port: number, name: string, ...targets: string[]): Promise<void> {
  const resolver = createDnsClient()
  try {
    await eventually(
      `the answer for ${name}`,
      async () => {
        const { message } = await resolver.query({ server: { address: '127.0.0.1', port }, name, type: 'A' })
        return groupRecords(message.answers)[0]?.values ?? []
      },
      (values) => values.toSorted().join() === targets.toSorted().join(),
      LIMIT_MS,
    )
  } finally {
    await resolver.close()
  }
}
