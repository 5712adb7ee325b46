/** Asks the servers of a simulated zone, as the manager does over the network: every query passes the faults of the simulation. */
import { type DnsClient, DnsError, FLAG, RCODE, rdataFromText, typeCode } from '@seamark/dns'
import type { SimulatedZone } from '../records/simulated-zone.ts'
import type { ExternalCall } from '../scenario.ts'

type Question = Parameters<DnsClient['query']>[0]

/** Of the class of the Internet. */
const IN = 1
const TTL_SECONDS = 60

export function zoneClient(zone: SimulatedZone, call: ExternalCall) {
  return {
    async query({ name, type }: Question) {
      const send = async () => {
        const values = zone.find(`${name.replace(/\.$/, '')}.`, type) ?? []
        const code = typeCode(type)
        const answers = values.map((value) => ({
          name,
          type: code,
          class: IN,
          ttl: TTL_SECONDS,
          data: rdataFromText(code, value),
        }))
        const sections = { questions: [], answers, authorities: [], additionals: [] }
        return { message: { id: 0, flags: FLAG.QR | FLAG.AA, opcode: 0, rcode: RCODE.NOERROR, ...sections } }
      }
      return call({ isWrite: false, send }).catch((error: unknown) => {
        throw new DnsError('TIMEOUT', String(error), { cause: error })
      })
    },
    close: async () => undefined,
  }
}
