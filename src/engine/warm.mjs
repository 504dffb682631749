export default 0;
