import { createDnsServer, loadZoneFile, decodeMessage, DnsError, rcodeName } from '@seamark/dns'
import { oddPackets, sendRaw } from './integration/dns/packets.ts'
import { startBind, startKnot } from './integration/dns/peers.ts'
const text = '$ORIGIN z0.test.\n$TTL 300\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.1\n'
const z = [{origin:'z0.test.', text}]
const [b,k] = await Promise.all([startBind(z), startKnot(z)])
const s = await createDnsServer({zones:[loadZoneFile(text) as never], listen:[{address:'127.0.0.1',port:0}]})
const show = (x?: Buffer) => { if (!x) return 'silence'; const m = decodeMessage(x); if (m instanceof DnsError) return 'BAD '+m.message; return [rcodeName(m.rcode), m.flags.toString(16),m.opcode, m.questions.length, m.answers.length, m.authorities.length, m.edns ? `edns${m.edns.version}${m.edns.isDo?'do':''}[${m.edns.options.map(o=>o.code)}]`:''].join(' ') }
for (const p of oddPackets()) {
  const [x,y,w] = (await Promise.all([sendRaw(b.address,p.bytes,400), sendRaw(k.address,p.bytes,400), sendRaw(s.addresses[0]!,p.bytes,400)])).map(show)
  console.log((w===x||w===y)?'  ':'!!', p.name.padEnd(36), '| B', x!.padEnd(32), '| K', y!.padEnd(32),'| us', w)
}
await Promise.all([b.close(),k.close(),s.close()])
