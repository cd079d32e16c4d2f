//! What streams have in common: `TcpStream` and `UnixStream`, and their halves.

#![forbid(unsafe_code)]

/// Defines a stream over a type of the standard library, in a module with its halves.
macro_rules! stream {
    ($name:ident, $std:ty, $made:literal) => {
        #[doc = concat!("A connection by ", $made, ".")]
        ///
        /// It reads and writes by the traits of `futures_io`, and with the features of the
        /// same names by those of tokio and hyper. It works under any executor. Dropping it
        /// closes the connection.
        #[derive(Debug)]
        pub struct $name {
            read: Half<$std>,
            write: Half<$std>,
        }

        impl $name {
            /// Takes over a connection of the standard library. It no longer blocks from
            /// then on.
            ///
            /// # Errors
            ///
            /// Returns the error of the system, or of the reactor if it cannot be started.
            pub fn from_std(stream: $std) -> io::Result<Self> {
                let (read, write) = Half::pair(stream)?;
                Ok(Self { read, write })
            }

            /// Returns the connection of the standard library. It still does not block.
            ///
            /// # Errors
            ///
            /// None today. The signature is that of tokio.
            pub fn into_std(self) -> io::Result<$std> {
                Ok(self.read.into_inner(self.write))
            }

            pub(super) fn io(&self) -> &$std {
                self.read.io()
            }

            /// Waits until a read would not block, or until the other side has ended.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses nothing.
            pub fn readable(&self) -> Readiness<'_, $std> {
                self.read.ready()
            }

            /// Waits until a write would not block.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses nothing.
            pub fn writable(&self) -> Readiness<'_, $std> {
                self.write.ready()
            }

            /// Reads without waiting, and returns the number of bytes. Zero means that the
            /// other side has ended.
            ///
            /// # Errors
            ///
            /// Returns an error of the kind `WouldBlock` if there is nothing to read.
            /// [`readable`](Self::readable) waits from then on.
            pub fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
                self.read.try_with(|mut io| io.read(bytes))
            }

            /// Writes without waiting, and returns the number of bytes.
            ///
            /// # Errors
            ///
            /// Returns an error of the kind `WouldBlock` if there is no room.
            /// [`writable`](Self::writable) waits from then on.
            pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.write.try_with(|mut io| io.write(bytes))
            }

            /// Splits the stream into its directions, for two tasks of one thread.
            pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
                (ReadHalf(&mut self.read), WriteHalf(&mut self.write))
            }

            /// Splits the stream into its directions, for any two tasks.
            #[must_use]
            pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
                let write = OwnedWriteHalf {
                    half: Some(self.write),
                };
                (OwnedReadHalf(self.read), write)
            }
        }

        /// The direction of a stream that reads. See
        #[doc = concat!("[`", stringify!($name), "::split`].")]
        #[derive(Debug)]
        pub struct ReadHalf<'a>(&'a mut Half<$std>);

        /// The direction of a stream that writes. See
        #[doc = concat!("[`", stringify!($name), "::split`].")]
        #[derive(Debug)]
        pub struct WriteHalf<'a>(&'a mut Half<$std>);

        /// A poll that panics leaves the half as it was: no foreign code runs while the
        /// half is changed.
        impl UnwindSafe for ReadHalf<'_> {}
        /// The same as for the half that reads.
        impl UnwindSafe for WriteHalf<'_> {}

        /// The direction of a stream that reads. See
        #[doc = concat!("[`", stringify!($name), "::into_split`].")]
        #[derive(Debug)]
        pub struct OwnedReadHalf(Half<$std>);

        /// The direction of a stream that writes. If it is dropped, the other side reads to
        /// the end. See
        #[doc = concat!("[`", stringify!($name), "::into_split`].")]
        #[derive(Debug)]
        pub struct OwnedWriteHalf {
            /// It is absent only after the halves were reunited.
            half: Option<Half<$std>>,
        }

        /// Two halves that were reunited are not of the same stream. They are returned.
        #[derive(Debug)]
        pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

        impl std::fmt::Display for ReuniteError {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the halves are not of the same stream: reunite those of one split")
            }
        }

        impl std::error::Error for ReuniteError {}

        impl OwnedReadHalf {
            /// Returns the stream again.
            ///
            /// # Errors
            ///
            /// Returns both halves if they are not of the same stream.
            pub fn reunite(self, write: OwnedWriteHalf) -> Result<$name, ReuniteError> {
                let mut write = write;
                match write.half.take_if(|half| half.is_of(&self.0)) {
                    Some(half) => Ok($name {
                        read: self.0,
                        write: half,
                    }),
                    None => Err(ReuniteError(self, write)),
                }
            }
        }

        impl OwnedWriteHalf {
            /// Returns the stream again.
            ///
            /// # Errors
            ///
            /// Returns both halves if they are not of the same stream.
            pub fn reunite(self, read: OwnedReadHalf) -> Result<$name, ReuniteError> {
                read.reunite(self)
            }

            fn half(&mut self) -> &mut Half<$std> {
                self.half.as_mut().expect("it is there until it is reunited")
            }
        }

        impl Drop for OwnedWriteHalf {
            fn drop(&mut self) {
                if let Some(half) = &self.half {
                    // If the connection has ended, there is nothing to tell.
                    let _ = half.io().shutdown(Shutdown::Write);
                }
            }
        }

        impl Reads for Half<$std> {
            fn poll_bytes(
                &mut self,
                cx: &mut Context<'_>,
                bytes: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                self.poll_with(cx, |mut io| io.read(bytes))
            }
        }

        impl Writes for Half<$std> {
            fn poll_bytes(
                &mut self,
                cx: &mut Context<'_>,
                bytes: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.poll_with(cx, |mut io| match bytes {
                    [bytes] => io.write(bytes),
                    bytes => io.write_vectored(bytes),
                })
            }

            fn end(&mut self) -> io::Result<()> {
                match self.io().shutdown(Shutdown::Write) {
                    // The other side was faster.
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    result => result,
                }
            }
        }

        stream!(@delegates Reads for $name: this => &mut this.read);
        stream!(@delegates Reads for ReadHalf<'_>: this => &mut *this.0);
        stream!(@delegates Reads for OwnedReadHalf: this => &mut this.0);
        stream!(@delegates Writes for $name: this => &mut this.write);
        stream!(@delegates Writes for WriteHalf<'_>: this => &mut *this.0);
        stream!(@delegates Writes for OwnedWriteHalf: this => this.half());
        reads!($name, ReadHalf<'_>, OwnedReadHalf);
        writes!($name, WriteHalf<'_>, OwnedWriteHalf);
    };
    (@delegates Reads for $reader:ty: $this:ident => $half:expr) => {
        impl Reads for $reader {
            fn poll_bytes(
                &mut self,
                cx: &mut Context<'_>,
                bytes: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                let $this = self;
                Reads::poll_bytes($half, cx, bytes)
            }
        }
    };
    (@delegates Writes for $writer:ty: $this:ident => $half:expr) => {
        impl Writes for $writer {
            fn poll_bytes(
                &mut self,
                cx: &mut Context<'_>,
                bytes: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = self;
                Writes::poll_bytes($half, cx, bytes)
            }

            fn end(&mut self) -> io::Result<()> {
                let $this = self;
                Writes::end($half)
            }
        }
    };
}

pub(super) use stream;
