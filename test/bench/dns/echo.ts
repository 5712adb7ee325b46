/** The least a Node process can do with a UDP packet: send it back, with the bit that makes it an answer. */
import { createSocket } from 'node:dgram'

const socket = createSocket({
  type: 'udp4',
  lookup: (host, _options, done) => done(null, host, 4),
  recvBufferSize: 4 << 20,
})
socket.on('message', (packet, from) => {
  packet[2]! |= 0x80
  socket.send(packet, 0, packet.length, from.port, from.address)
})
socket.bind(0, '127.0.0.1', () => process.stdout.write(`ready 127.0.0.1:${socket.address().port}\n`))
process.on('SIGTERM', () => process.exit(0))
