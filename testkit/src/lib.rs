//! Throwaway servers, filesystems and faults for evenkeel's tests.
