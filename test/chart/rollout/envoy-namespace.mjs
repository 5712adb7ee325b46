/**
 * A program in a network namespace of its own, as that of a Pod: every Envoy has the same ports. `accepts` are ports that are
 * reached from outside by socket files, `reaches` are addresses outside.
 */
import { spawn } from 'node:child_process'
import { connect, createServer } from 'node:net'

const { accepts, reaches, command } = JSON.parse(process.argv[2])

function forward(from, to) {
  createServer({ allowHalfOpen: true }, (socket) => {
    const other = connect({ ...to, allowHalfOpen: true })
    for (const [one, two] of [
      [socket, other],
      [other, socket],
    ]) {
      one.on('error', () => two.destroy())
      one.on('close', () => two.destroy())
    }
    // Only what is connected has been accepted.
    other.once('connect', () => {
      if (from.isAnnounced) socket.write('+')
      socket.pipe(other).pipe(socket)
    })
  }).listen(from)
}

for (const { path, port, isAnnounced } of accepts) forward({ path, isAnnounced }, { host: '127.0.0.1', port })
for (const { host, port, path } of reaches) forward({ host, port }, { path })
const [program, ...args] = command
const child = spawn(program, args, { stdio: 'inherit' })
process.on('SIGTERM', () => child.kill('SIGTERM'))
// What it sent last is passed on.
child.on('exit', () => setTimeout(() => process.exit(), 300))
