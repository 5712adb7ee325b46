/**
 * Reads a file that a zone file names. Only regular files: a device has no end (/dev/zero), and a FIFO or a terminal makes
 * the reader wait for a writer that may never come.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { DnsError } from '../error.ts'

/** Throws DnsError BAD_ZONE for anything but a regular file, and the error of the file system when it cannot be opened. */
export function readRegularFile(path: string): Buffer {
  // Without O_NONBLOCK opening a FIFO waits for its writer.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  try {
    if (!fstatSync(descriptor).isFile()) throw new DnsError('BAD_ZONE', `${path} is not a regular file`)
    return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
